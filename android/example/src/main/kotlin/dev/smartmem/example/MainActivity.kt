package dev.smartmem.example

import android.app.Activity
import android.graphics.Bitmap
import android.graphics.BitmapFactory
import android.os.Bundle
import android.widget.TextView
import dev.smartmem.Plan
import dev.smartmem.SmartmemException
import kotlin.concurrent.thread

/** Classifies `assets/image.jpg` with `assets/model.plan` and shows the best classes. */
class MainActivity : Activity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val view = TextView(this)
        setContentView(view)
        thread {
            val text = try {
                classified()
            } catch (error: SmartmemException) {
                error.message
            }
            runOnUiThread { view.text = text }
        }
    }

    private fun classified(): String {
        val plan = assets.openFd("model.plan").use { asset ->
            val descriptor = asset.parcelFileDescriptor.fd
            Plan.open(descriptor, asset.startOffset, asset.length, cacheFolder = codeCacheDir.path)
        }
        return Classifier(plan).use { classifier ->
            val image = assets.open("image.jpg").use(BitmapFactory::decodeStream)
            val scaled = Bitmap.createScaledBitmap(image, classifier.width, classifier.height, true)
            val pixels = IntArray(classifier.width * classifier.height)
            scaled.getPixels(pixels, 0, classifier.width, 0, 0, classifier.width, classifier.height)
            classifier.classify(pixels).joinToString("\n") { "class ${it.number}: ${it.score}" }
        }
    }
}
