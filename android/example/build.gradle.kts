plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
}

android {
    namespace = "dev.smartmem.example"
    compileSdk = 35
    defaultConfig {
        applicationId = "dev.smartmem.example"
        minSdk = 23
        targetSdk = 35
    }
    // the plan is mapped where it lies in the package
    androidResources { noCompress += "plan" }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
    kotlinOptions { jvmTarget = "11" }
}

dependencies { implementation(project(":smartmem")) }
