// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import WindowPreview

/// What a window that finds no screen advises: only what suits the variables that are set.
@Suite struct WindowFaultTests {
    private func way(_ variables: [String: String]) -> String { WindowFault.wayToScreen { variables[$0] } }

    private static let neither =
        "Neither DISPLAY nor WAYLAND_DISPLAY is set: start framehost in a terminal of a desktop session, or on a text console with access to /dev/dri."
    private static let x11 = "Check that the X server of DISPLAY=:7 runs and admits this user (\"xset q\")."
    private static let wayland =
        "Check that the Wayland compositor of WAYLAND_DISPLAY=wayland-1 runs and belongs to this user."

    @Test func speaksOnlyOfTheSessionThatThereIs() {
        #expect(way([:]) == Self.neither)
        #expect(way(["DISPLAY": "", "WAYLAND_DISPLAY": ""]) == Self.neither)
        #expect(way(["DISPLAY": ":7"]) == Self.x11)
        #expect(way(["WAYLAND_DISPLAY": "wayland-1", "XDG_RUNTIME_DIR": "/run/user/1"]) == Self.wayland)
        #expect(
            way(["DISPLAY": ":7", "WAYLAND_DISPLAY": "wayland-1", "XDG_RUNTIME_DIR": "/run/user/1"])
                == "\(Self.x11) \(Self.wayland)")
    }

    @Test func namesTheFolderThatWaylandLacks() {
        #expect(
            way(["WAYLAND_DISPLAY": "wayland-1"]).hasPrefix(
                "Set XDG_RUNTIME_DIR to the folder with the socket wayland-1 of WAYLAND_DISPLAY, usually /run/user/"))
        #expect(
            way(["WAYLAND_DISPLAY": "/tmp/w"])
                == "Check that the Wayland compositor of WAYLAND_DISPLAY=/tmp/w runs and belongs to this user.")
    }

    @Test func unsetsAVideoDriverThatExcludesTheScreen() {
        let unset = "Unset SDL_VIDEODRIVER=wayland, so that SDL tries all its drivers."
        #expect(way(["DISPLAY": ":7", "SDL_VIDEODRIVER": "wayland"]) == unset)
        #expect(way(["SDL_VIDEODRIVER": "wayland"]) == "\(Self.neither) \(unset)")
        #expect(
            way(["DISPLAY": ":7", "SDL_VIDEODRIVER": "wayland,x11"])
                == "\(Self.x11) Unset SDL_VIDEODRIVER=wayland,x11, so that SDL tries all its drivers.")
    }

    @Test func recommendsToDrawWithoutTheGraphicsCardOnlyWhereThatIsNotDone() {
        func way(_ isSoftware: Bool, _ driver: String?) -> String {
            WindowFault.wayToDraw(isSoftware: isSoftware) { $0 == "SDL_RENDER_DRIVER" ? driver : nil }
        }
        let set = "Set the environment variable SDL_RENDER_DRIVER=software to draw without the graphics card."
        #expect(way(false, nil) == set && way(false, "") == set)
        #expect(
            way(true, nil)
                == "Check that other programs can open windows on this screen, or remove the stage from the chain.")
        #expect(
            way(true, "software") == "Unset SDL_RENDER_DRIVER=software, so that SDL tries all its drivers.")
    }
}
