package dev.smartmem

import java.io.Closeable
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.FloatBuffer

/** The memory of one run of a plan at a time; several threads take turns. */
class Session internal constructor(private val plan: Plan) : Closeable {
    private val handle = Native.openSession(plan.handle)
    private var isOpen = true

    /**
     * One inference of a model whose inputs and outputs are single precision.
     *
     * @param inputs for each input its elements, from the buffer's position to its limit
     * @param shapes of inputs that have open dimensions
     * @return for each output its elements, in memory of its own
     * @throws SmartmemException an input is missing, unknown or of another size, or the device refuses the run
     */
    @JvmOverloads
    @Synchronized
    fun run(inputs: Map<String, FloatBuffer>, shapes: Map<String, LongArray> = emptyMap()): Map<String, FloatBuffer> {
        val all = plan.inputs + plan.outputs
        all.firstOrNull { it.element != FLOAT32 }?.let {
            throw SmartmemException(BAD_ARGUMENT, "the elements of ${it.name} are no floats; use runBytes")
        }
        return runBytes(inputs.mapValues { bytesOf(it.value) }, shapes).mapValues { it.value.asFloatBuffer() }
    }

    /** The same for any types of elements, as little-endian bytes. */
    @JvmOverloads
    @Synchronized
    fun runBytes(
        inputs: Map<String, ByteBuffer>,
        shapes: Map<String, LongArray> = emptyMap()
    ): Map<String, ByteBuffer> {
        // every input is set anew for every run: the library reads the buffers of this call, and no older ones
        plan.inputs.firstOrNull { it.name !in inputs }?.let {
            throw SmartmemException(NO_INPUT, "the input ${it.name} is missing")
        }
        val held = inputs.mapValues { directOf(it.value) }
        for ((name, data) in held) Native.setInput(handle, name.toByteArray(), data, shapes[name])
        Native.run(handle)
        check(held.size == inputs.size) // a use after the run: until here no buffer may be collected
        return plan.outputs.associate { it.name to outputOf(it.name.toByteArray()) }
    }

    private fun outputOf(name: ByteArray): ByteBuffer {
        val found = direct(Native.outputBytes(handle, name))
        Native.copyOutput(handle, name, found)
        return found
    }

    /** The extents of an output of the last run. */
    @Synchronized
    fun outputShape(name: String): LongArray = Native.outputShape(handle, name.toByteArray())

    @Synchronized
    override fun close() {
        if (isOpen) {
            isOpen = false
            Native.closeSession(handle)
        }
    }

    private companion object {
        const val BAD_ARGUMENT = 1
        const val NO_INPUT = 5
        const val FLOAT32 = 2

        fun direct(bytes: Long): ByteBuffer =
            ByteBuffer.allocateDirect(Math.toIntExact(bytes)).order(ByteOrder.LITTLE_ENDIAN)

        fun bytesOf(floats: FloatBuffer): ByteBuffer {
            val made = direct(4L * floats.remaining())
            made.asFloatBuffer().put(floats.duplicate())
            return made
        }

        /** The bytes from position to limit, where the library can read them. */
        fun directOf(data: ByteBuffer): ByteBuffer {
            if (data.isDirect) return data.slice()
            val made = direct(data.remaining().toLong())
            made.duplicate().put(data.duplicate())
            return made
        }
    }
}
