package dev.smartmem.example

import dev.smartmem.Plan
import java.io.Closeable
import java.nio.FloatBuffer

/** A class of a model, and what the model gives it. */
class Guess(val number: Int, val score: Float)

/** Classifies images with a plan whose one input is [1, 3, height, width] and whose one output has a score per class. */
class Classifier(private val plan: Plan) : Closeable {
    private val session = plan.session()
    private val input = plan.inputs.single()
    private val output = plan.outputs.single()

    val height: Int = input.shape[2].toInt()
    val width: Int = input.shape[3].toInt()

    /**
     * The best classes of an image.
     *
     * @param pixels ARGB, height x width of them
     */
    fun classify(pixels: IntArray, count: Int = 5): List<Guess> {
        require(pixels.size == height * width) { "the model takes $height x $width pixels, not ${pixels.size}" }
        val scores = session.run(mapOf(input.name to normalized(pixels))).getValue(output.name)
        return (0 until scores.remaining()).map { Guess(it, scores.get(it)) }.sortedByDescending { it.score }.take(count)
    }

    private fun normalized(pixels: IntArray): FloatBuffer {
        val floats = FloatBuffer.allocate(CHANNELS * pixels.size)
        for (channel in 0 until CHANNELS) {
            val shift = 8 * (CHANNELS - 1 - channel)
            for (pixel in pixels) floats.put((((pixel shr shift) and 0xFF) / 255f - MEAN[channel]) / SPREAD[channel])
        }
        floats.flip()
        return floats
    }

    override fun close() {
        session.close()
        plan.close()
    }

    private companion object {
        const val CHANNELS = 3
        val MEAN = floatArrayOf(0.485f, 0.456f, 0.406f) // of ImageNet, as torchvision's models expect
        val SPREAD = floatArrayOf(0.229f, 0.224f, 0.225f)
    }
}
