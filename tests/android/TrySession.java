import dev.smartmem.Plan;
import dev.smartmem.Session;
import dev.smartmem.SmartmemException;
import dev.smartmem.TensorInfo;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/** Runs a plan through the Kotlin classes: several runs of several extents, and wrong calls. */
final class TrySession {
    private TrySession() {}

    private static void wrong(String what, Runnable call) {
        try {
            call.run();
            System.out.println(what + ": nothing");
        } catch (SmartmemException error) {
            System.out.println(what + ": " + error.getStatus() + " " + error.getMessage().split("\n")[0]);
        }
    }

    public static void main(String[] arguments) throws IOException {
        byte[] bytes = Files.readAllBytes(Path.of(arguments[1]));
        FloatBuffer image = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
        Map<String, long[]> one = Map.of("image", new long[] {1, 3, 32, 32});
        Map<String, long[]> two = Map.of("image", new long[] {2, 3, 32, 32});
        try (Plan plan = Plan.open(arguments[0]);
                Session session = plan.session()) {
            TensorInfo input = plan.getInputs().get(0);
            System.out.println(input.getName() + " " + input.getElement() + " " + Arrays.toString(input.getShape()));
            FloatBuffer first = image.duplicate();
            first.limit(3 * 32 * 32);
            FloatBuffer single = session.run(Map.of("image", first), one).get("label");
            FloatBuffer both = session.run(Map.of("image", image), two).get("label");
            System.out.println(Arrays.toString(session.outputShape("label")));
            System.out.println(single.remaining() + " " + both.remaining() + " " + image.position());
            wrong("missing", () -> session.run(Map.of(), two));
            wrong("unknown", () -> session.run(Map.of("image", image, "other", image), two));
            wrong("short", () -> session.run(Map.of("image", first), two));
            float[] found = new float[both.remaining()];
            both.get(found);
            ByteBuffer out = ByteBuffer.allocate(4 * found.length).order(ByteOrder.LITTLE_ENDIAN);
            out.asFloatBuffer().put(found);
            Files.write(Path.of(arguments[2]), out.array());
            session.close();
            session.close();
            wrong("closed", () -> session.run(Map.of("image", image), two));
        }
    }
}
