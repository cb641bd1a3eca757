package dev.smartmem;

import java.nio.charset.StandardCharsets;

/** What libsmartmem refuses, in its words. */
public final class SmartmemException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int status;

    SmartmemException(int status, byte[] message) {
        super(new String(message, StandardCharsets.UTF_8));
        this.status = status;
    }

    SmartmemException(int status, String message) {
        super(message);
        this.status = status;
    }

    /** The number of its status in smartmem.h. */
    public int getStatus() {
        return status;
    }
}
