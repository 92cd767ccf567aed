// SPDX-License-Identifier: Apache-2.0

/// What comes with the program.
enum ShippedPlugins {
    /// In the order of the alphabet.
    static let ids = [
        "alsa-source", "audio-encoder", "audio-meter", "audio-mix", "audio-resample", "audio-shift", "convert",
        "crop-orient", "face-effect", "file-source", "fps-meter", "frei0r", "frei0r-mixer", "gain", "image-sink",
        "image-source",
        "mask", "mosaic", "motion-detect", "motion-source",
        "motion-sync", "network-source", "null-sink", "part-sink", "part-source", "picture-overlay", "rate",
        "recorder", "replicate",
        "rtsp-sink", "source-switch", "test-source", "text", "tone-source", "v4l2-sink", "v4l2-source", "video-snake",
        "window-preview", "x264-encoder", "y4m-sink", "y4m-source",
    ]
    /// What is no stage.
    static let others = ["control-server", "mqtt-events", "nats-events", "onvif", "picture-encoder", "webhook"]
}
