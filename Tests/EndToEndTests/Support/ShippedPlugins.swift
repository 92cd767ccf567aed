// SPDX-License-Identifier: Apache-2.0

/// What comes with the program.
enum ShippedPlugins {
    /// In the order of the alphabet.
    static let ids = [
        "convert", "crop-orient", "face-effect", "file-source", "fps-meter", "frei0r", "frei0r-mixer", "image-source",
        "mosaic", "network-source", "null-sink", "part-sink", "part-source", "rate", "recorder", "replicate",
        "rtsp-sink",
        "source-switch", "test-source", "text", "v4l2-sink", "v4l2-source", "window-preview", "x264-encoder",
        "y4m-sink", "y4m-source",
    ]
    /// What is no stage.
    static let others = ["control-server", "mqtt-events", "nats-events", "picture-encoder"]
}
