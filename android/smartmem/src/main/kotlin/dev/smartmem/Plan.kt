package dev.smartmem

import java.io.Closeable

/** An input or output of a plan; extents of open dimensions are the greatest ones. */
class TensorInfo internal constructor(val name: String, val element: Int, val shape: LongArray)

/** A plan on a device: its programs are built and its constants are in place. Several sessions may share it. */
class Plan private constructor(internal val handle: Long) : Closeable {
    private var isOpen = true

    val inputs: List<TensorInfo> = tensors(false)
    val outputs: List<TensorInfo> = tensors(true)

    private fun tensors(output: Boolean): List<TensorInfo> = (0 until Native.count(handle, output)).map { number ->
        TensorInfo(
            String(Native.name(handle, output, number), Charsets.UTF_8),
            Native.element(handle, output, number),
            Native.shape(handle, output, number)
        )
    }

    /** A session: the memory of one run at a time. */
    fun session(): Session = Session(this)

    /** Closes the plan. What it holds goes when its last session is closed. */
    @Synchronized
    override fun close() {
        if (isOpen) {
            isOpen = false
            Native.closePlan(handle)
        }
    }

    companion object {
        /**
         * Opens a plan's file.
         *
         * @param device null: the one that the plan was made for, else a GPU
         * @param cacheFolder for compiled programs, such as `context.codeCacheDir`
         * @throws SmartmemException there is no such file or device, the plan is damaged or does not fit
         */
        @JvmStatic
        @JvmOverloads
        fun open(path: String, device: String? = null, cacheFolder: String? = null): Plan =
            Plan(Native.openPlan(path.toByteArray(), device?.toByteArray(), cacheFolder?.toByteArray()))

        /** Opens a plan in a part of an open file, such as an asset that is stored uncompressed; the caller closes it. */
        @JvmStatic
        @JvmOverloads
        fun open(
            descriptor: Int,
            offset: Long,
            bytes: Long,
            device: String? = null,
            cacheFolder: String? = null
        ): Plan = Plan(
            Native.openPlanDescriptor(descriptor, offset, bytes, device?.toByteArray(), cacheFolder?.toByteArray())
        )
    }
}
