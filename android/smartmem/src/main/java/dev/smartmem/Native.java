package dev.smartmem;

import java.nio.ByteBuffer;

/**
 * libsmartmem's functions, with handles as numbers and texts as UTF-8. Each throws {@link SmartmemException}; a handle
 * that was closed, or never given out, is one, too. {@link Session} keeps buffers alive while the library reads them.
 */
final class Native {
    static {
        System.loadLibrary("smartmem_jni");
    }

    private Native() {}

    static native long openPlan(byte[] path, byte[] device, byte[] cacheFolder);

    static native long openPlanDescriptor(int descriptor, long offset, long bytes, byte[] device, byte[] cacheFolder);

    static native void closePlan(long plan);

    static native int count(long plan, boolean output);

    static native byte[] name(long plan, boolean output, int number);

    static native int element(long plan, boolean output, int number);

    static native long[] shape(long plan, boolean output, int number);

    static native long openSession(long plan);

    static native void closeSession(long session);

    /** The library reads the buffer in each run that follows: it must live, and be set again, for each. */
    static native void setInput(long session, byte[] name, ByteBuffer data, long[] shape);

    static native void run(long session);

    static native long[] outputShape(long session, byte[] name);

    static native long outputBytes(long session, byte[] name);

    static native void copyOutput(long session, byte[] name, ByteBuffer to);
}
