// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What can be wrong with a window.
enum WindowFault {
    /// SDL finds no screen to show windows on.
    ///
    /// - Parameter reason: SDL's words in quotes, or what it did instead.
    static func noScreen(_ reason: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "SDL found no screen for windows: \(reason)",
            remedy: wayToScreen(ownEnvironment) + " Without a screen, remove the stage from the chain.")
    }

    private static func ownEnvironment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// How SDL can find a screen: sentences about the variables that lead it to one and are set.
    ///
    /// - Parameter environment: Gives the value of a variable. An empty one counts as not set.
    static func wayToScreen(_ environment: (String) -> String?) -> String {
        func value(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
        let (x11, wayland, driver) = (value("DISPLAY"), value("WAYLAND_DISPLAY"), value("SDL_VIDEODRIVER"))
        // SDL tries the drivers in this list and no others (SDL_HINT_VIDEODRIVER).
        let drivers = driver.map { $0.lowercased().split(separator: ",").map(String.init) }
        func isTried(_ name: String) -> Bool { drivers?.contains(name) ?? true }
        var ways: [String] = []
        if x11 == nil, wayland == nil {
            ways.append(
                "Neither DISPLAY nor WAYLAND_DISPLAY is set: start framehost in a terminal of a desktop session, or on a text console with access to /dev/dri."
            )
        }
        if let x11, isTried("x11") {
            ways.append("Check that the X server of DISPLAY=\(x11) runs and admits this user (\"xset q\").")
        }
        if let wayland, isTried("wayland") {
            let folder = value("XDG_RUNTIME_DIR")
            ways.append(
                wayland.hasPrefix("/") || folder != nil
                    ? "Check that the Wayland compositor of WAYLAND_DISPLAY=\(wayland) runs and belongs to this user."
                    : "Set XDG_RUNTIME_DIR to the folder with the socket \(wayland) of WAYLAND_DISPLAY, usually /run/user/\(getuid())."
            )
        }
        if let driver {
            ways.append("Unset SDL_VIDEODRIVER=\(driver), so that SDL tries all its drivers.")
        }
        return ways.joined(separator: " ")
    }

    /// A window, or what draws into it, cannot be made. SDL was then asked for drawing without the graphics card too.
    static func call(_ name: String, _ reason: String) -> FrameHostError {
        FrameHostError(.callFailed, what: "\(name) failed: \(reason)", remedy: checkScreen)
    }

    private static let checkScreen =
        "Check that other programs can open windows on this screen, or remove the stage from the chain."

    /// - Parameter isSoftware: Whether SDL draws without the graphics card.
    static func texture(_ what: String, _ reason: String, isSoftware: Bool) -> FrameHostError {
        FrameHostError(
            .callFailed, what: "\(what) failed: \(reason)",
            remedy: wayToDraw(isSoftware: isSoftware, ownEnvironment))
    }

    /// How SDL can draw in another way than the one that failed.
    ///
    /// - Parameter environment: Gives the value of a variable. An empty one counts as not set.
    static func wayToDraw(isSoftware: Bool, _ environment: (String) -> String?) -> String {
        if let driver = environment("SDL_RENDER_DRIVER"), !driver.isEmpty {
            return "Unset SDL_RENDER_DRIVER=\(driver), so that SDL tries all its drivers."
        }
        return isSoftware
            ? checkScreen : "Set the environment variable SDL_RENDER_DRIVER=software to draw without the graphics card."
    }

    static func tooLarge(_ format: VideoFormat, _ width: Int, _ height: Int) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "the pictures are \(format.width)x\(format.height), but the graphics card takes at most \(width)x\(height)",
            remedy:
                "Put a 'crop-orient' with a \"size\" before this stage, or set the environment variable SDL_RENDER_DRIVER=software."
        )
    }

    /// The display server has gone.
    static let screenLost = FrameHostError(
        .callFailed, what: "the display server has closed the connection",
        remedy:
            "Start framehost again when the display server is running. Set \"onError\": \"continue\" to keep the rest of the chain running without the window."
    )

    static func noAnswer(_ seconds: Int) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "the window was not open after \(seconds) s",
            remedy: "Check that the display server responds (for an X server: \"xset q\").")
    }
}
