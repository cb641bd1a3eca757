package dev.smartmem;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Runs a plan through dev.smartmem.Native, then calls each function wrongly and prints what it says. */
final class TryNative {
    private static final long NEVER = 0x7777000000000001L;
    private static final long[] SHAPE = {2, 3, 32, 32};

    private TryNative() {}

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void wrong(String what, Runnable call) {
        try {
            call.run();
            System.out.println(what + ": nothing");
        } catch (SmartmemException error) {
            System.out.println(what + ": " + error.getStatus() + " " + error.getMessage().split("\n")[0]);
        }
    }

    private static ByteBuffer direct(byte[] bytes) {
        ByteBuffer made = ByteBuffer.allocateDirect(bytes.length);
        made.duplicate().put(bytes);
        return made;
    }

    public static void main(String[] arguments) throws IOException {
        ByteBuffer image = direct(Files.readAllBytes(Path.of(arguments[1])));
        byte[] name = utf8("image");
        byte[] label = utf8("label");
        long plan = Native.openPlan(utf8(arguments[0]), null, null);
        long session = Native.openSession(plan);
        wrong("run without input", () -> Native.run(session));
        wrong("output without run", () -> Native.outputBytes(session, label));
        wrong("heap buffer", () -> Native.setInput(session, name, ByteBuffer.allocate(64), SHAPE));
        wrong("null buffer", () -> Native.setInput(session, name, null, SHAPE));
        wrong("null name", () -> Native.setInput(session, null, image, SHAPE));
        wrong("unknown name", () -> Native.setInput(session, utf8("imäge"), image, SHAPE));
        wrong("short buffer", () -> Native.setInput(session, name, ByteBuffer.allocateDirect(64), SHAPE));
        wrong("no shape", () -> Native.setInput(session, name, image, null));
        wrong("long shape", () -> Native.setInput(session, name, image, new long[99]));
        wrong("negative shape", () -> Native.setInput(session, name, image, new long[] {-2, 3, 32, 32}));
        wrong("session never opened", () -> Native.run(NEVER));
        wrong("plan as session", () -> Native.run(plan));
        wrong("session of no plan", () -> Native.openSession(NEVER));
        wrong("no such input", () -> Native.shape(plan, false, 1));
        wrong("negative number", () -> Native.name(plan, true, -1));
        wrong("count of no plan", () -> Native.count(0, false));
        wrong("no such file", () -> Native.openPlan(utf8("/nowhere/ü.plan"), null, null));
        wrong("null path", () -> Native.openPlan(null, null, null));
        wrong("no plan", () -> Native.openPlan(utf8(arguments[1]), null, null));
        wrong("no such device", () -> Native.openPlan(utf8(arguments[0]), utf8("no such device"), null));
        wrong("bad descriptor", () -> Native.openPlanDescriptor(-1, 0, 0, null, null));
        wrong("negative offset", () -> Native.openPlanDescriptor(0, -1, 0, null, null));
        Native.setInput(session, name, image, SHAPE);
        Native.run(session);
        ByteBuffer found = ByteBuffer.allocateDirect((int) Native.outputBytes(session, label));
        Native.copyOutput(session, label, found);
        wrong("short output", () -> Native.copyOutput(session, label, ByteBuffer.allocateDirect(4)));
        wrong("heap output", () -> Native.copyOutput(session, label, ByteBuffer.allocate(80)));
        wrong("unknown output", () -> Native.outputShape(session, name));
        byte[] bytes = new byte[found.capacity()];
        found.duplicate().get(bytes);
        Files.write(Path.of(arguments[2]), bytes);
        Native.closePlan(plan);
        Native.run(session);
        wrong("plan closed twice", () -> Native.closePlan(plan));
        Native.closeSession(session);
        wrong("session closed twice", () -> Native.closeSession(session));
        wrong("run after closing", () -> Native.run(session));
    }
}
