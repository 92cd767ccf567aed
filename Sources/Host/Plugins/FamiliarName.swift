// SPDX-License-Identifier: Apache-2.0

/// What GStreamer or FFmpeg calls the work of a stage type. Those who know these programs try such a name first.
///
/// `docs/comparisons.md` has most of these names, and a test asks for each that stands there.
enum FamiliarName {
    /// By stage type: names of GStreamer's elements, and of FFmpeg's filters, devices and encoders.
    static let ofTypes: [String: [String]] = [
        "alsa-source": ["alsasrc", "pulsesrc", "pipewiresrc", "autoaudiosrc", "alsa", "pulse"],
        "audio-encoder": ["avenc_aac", "fdkaacenc", "voaacenc", "opusenc", "aac", "libopus"],
        "audio-meter": ["level", "ebur128level", "ebur128"],
        "audio-mix": ["audiomixer", "adder", "liveadder", "amix", "amerge"],
        "audio-resample": ["audioconvert", "audioresample", "aresample"],
        "audio-shift": ["adelay", "asetpts", "itsoffset"],
        "convert": ["videoconvert", "format"],
        "crop-orient": [
            "aspectratiocrop", "videobox", "videocrop", "videoflip", "videoscale", "videoconvertscale", "crop", "hflip",
            "scale", "transpose", "vflip",
        ],
        "face-effect": ["faceblur", "facedetect"],
        "file-source": ["decodebin", "filesrc", "movie", "uridecodebin"],
        "fps-meter": ["fpsdisplaysink"],
        "gain": ["volume"],
        "image-sink": ["multifilesink", "jpegenc", "pngenc", "mjpeg", "png"],
        "image-source": ["imagefreeze", "multifilesrc", "image2"],
        "mask": ["drawbox", "delogo"],
        "mosaic": ["compositor", "videomixer", "hstack", "vstack", "xstack"],
        "motion-detect": ["motioncells"],
        "network-source": ["hlsdemux", "rtmpsrc", "rtspsrc", "souphttpsrc", "srtsrc", "udpsrc"],
        "null-sink": ["fakesink", "null"],
        "picture-overlay": ["gdkpixbufoverlay", "overlay"],
        "rate": ["videorate", "fps"],
        "recorder": ["filesink", "matroskamux", "mp4mux", "qtmux", "splitmuxsink"],
        "rtsp-sink": ["rtspclientsink"],
        "source-switch": ["fallbackswitch", "input-selector", "streamselect"],
        "test-source": ["videotestsrc", "smptebars", "testsrc", "testsrc2"],
        "text": ["clockoverlay", "textoverlay", "timeoverlay", "drawtext"],
        "tone-source": ["audiotestsrc", "sine"],
        "v4l2-sink": ["v4l2sink"],
        "v4l2-source": ["v4l2src", "v4l2", "video4linux2"],
        "window-preview": ["autovideosink", "glimagesink", "waylandsink", "ximagesink", "xvimagesink", "sdl2"],
        "x264-encoder": ["x264enc", "openh264enc", "libx264"],
        "y4m-sink": ["y4menc"],
        "y4m-source": ["y4mdec"],
    ]

    /// Names of work that no stage does, with what does it.
    static let ofNoType: [String: String] = [
        "tee": fork, "split": fork, "queue": queue, "queue2": queue,
        "h264parse": "Leave it out: stages give H.264 in the form that others take.",
    ]

    private static let fork =
        "Leave it out: several stages can take from one. Write \"from\" with its id in each of them."
    private static let queue =
        "Leave it out: framehost plans queues and threads itself, and `framehost check` lists them."

    /// The remedy for a stage type that has the name `name` in another program; nil for other names.
    ///
    /// - Parameter types: The stage types that were found.
    static func remedy(for name: String, among types: [String]) -> String? {
        if let text = ofNoType[name] { return text }
        guard let type = ofTypes.first(where: { $0.value.contains(name) })?.key, types.contains(type) else {
            return nil
        }
        return "Use '\(type)': `framehost describe \(type)` lists its options."
    }
}
