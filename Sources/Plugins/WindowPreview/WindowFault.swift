// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What can be wrong with a window.
enum WindowFault {
    /// SDL finds no screen to show windows on.
    static func noScreen(_ reason: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "SDL found no screen for windows: '\(reason)'",
            remedy:
                "Run in a desktop session, or set DISPLAY or WAYLAND_DISPLAY to one. Otherwise remove the stage from the chain."
        )
    }

    static func call(_ name: String, _ reason: String) -> FrameHostError {
        FrameHostError(
            .callFailed, what: "\(name) failed: \(reason)",
            remedy: "SDL_RENDER_DRIVER=software draws without the graphics card.")
    }

    static func tooLarge(_ format: VideoFormat, _ width: Int, _ height: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "the pictures are \(format.width)x\(format.height), but the graphics card takes at most \(width)x\(height)",
            remedy: "Put a 'crop-orient' with a \"size\" before this stage, or set SDL_RENDER_DRIVER=software.")
    }

    /// The display server has gone.
    static let screenLost = FrameHostError(
        .callFailed, what: "the display server has closed the connection",
        remedy:
            "Start the program again when there is a screen; \"onError\": \"continue\" keeps the rest of the chain running."
    )

    static func noAnswer(_ seconds: Int) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "the screen did not answer within \(seconds) s",
            remedy: "Check that the display server responds (\"xset q\").")
    }
}
