// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// `window-preview` on a screen of Xvfb's.
@Suite struct WindowTests {
    private let workspace: Workspace
    private let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    /// A screen of 1024x768 that ends with the test.
    private final class Screen {
        let display: String
        private let server: RunningProgram

        init() throws {
            server = try Tool(name: "Xvfb").start([
                "-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp",
            ])
            try server.waitForOutput("\n")
            display = ":" + server.output.trimmingCharacters(in: .whitespacesAndNewlines)
        }

        deinit {
            goOn()
            server.send(SIGTERM)
        }

        func freeze() { server.send(SIGSTOP) }
        func goOn() { server.send(SIGCONT) }
        func die() { server.send(SIGKILL) }

        var environment: [String: String] {
            ["DISPLAY": display, "WAYLAND_DISPLAY": "", "SDL_RENDER_DRIVER": "software"]
        }

        @discardableResult
        func ask(_ arguments: String...) throws -> [String] {
            let script = Repository.root.appending(path: "Tests/Tools/screen.py").path
            let outcome = try Program(URL(fileURLWithPath: "/usr/bin/python3")).run([script, display] + arguments)
            guard outcome.status == 0 else { throw TestFault("screen.py \(arguments): \(outcome.error)") }
            return outcome.lines
        }

        /// Asks until the answer is as wanted, or two minutes are over.
        func pixels(_ title: String, _ places: [String], until isWanted: ([[Int]]) -> Bool) throws -> [[Int]] {
            let deadline = Date() + 120
            while true {
                let script = Repository.root.appending(path: "Tests/Tools/screen.py").path
                let outcome = try Program(URL(fileURLWithPath: "/usr/bin/python3")).run(
                    [script, display, "pixels", title] + places)
                let colours = outcome.lines.map { $0.split(separator: ",").compactMap { Int($0) } }
                if isWanted(colours) || Date() > deadline { return colours }
                Thread.sleep(forTimeInterval: 0.1)
            }
        }
    }

    /// Red and green above, blue and white below.
    private func writeQuarters() throws {
        var bytes = Data("P6\n320 240\n255\n".utf8)
        for y in 0..<240 {
            for x in 0..<320 {
                bytes += y < 120 ? (x < 160 ? [255, 0, 0] : [0, 255, 0]) : (x < 160 ? [0, 0, 255] : [255, 255, 255])
            }
        }
        try workspace.write("quarters.ppm", bytes)
        let made = try Tool(name: "ffmpeg").run(
            "-v", "error", "-i", workspace.path("quarters.ppm"), workspace.path("quarters.png"))
        guard made.status == 0 else { throw TestFault(made.error) }
    }

    private static let colours = [
        "red": [255, 0, 0], "green": [0, 255, 0], "blue": [0, 0, 255], "white": [255, 255, 255], "grey": [64, 64, 64],
    ]

    private static func isNear(_ colour: [Int], _ name: String) -> Bool {
        guard let wanted = colours[name], colour.count == 3 else { return false }
        return zip(colour, wanted).allSatisfy { abs($0 - $1) <= 6 }
    }

    @Test(
        .needs(Tool(name: "Xvfb")),
        arguments: [
            // The corners from the left above, as one reads.
            (#""size": "320x240""#, "320x240", ["red", "green", "blue", "white"]),
            (#""size": "320x240", "mirror": "on""#, "320x240", ["green", "red", "white", "blue"]),
            (#""rotate": 90"#, "240x320", ["blue", "red", "white", "green"]),
            (#""rotate": 90, "mirror": "on""#, "240x320", ["white", "green", "blue", "red"]),
            (#""size": "320x320""#, "320x320", ["grey", "grey", "grey", "grey"]),
            (#""size": "320x320", "fit": "fill""#, "320x320", ["red", "green", "blue", "white"]),
        ], ["i420", "nv12", "yuyv", "bgra"])
    func showsThePicture(_ view: (options: String, size: String, corners: [String]), format: String) throws {
        try writeQuarters()
        let screen = try Screen()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "picture", "use": "image-source", "path": "quarters.png", "live": true, "seconds": 60, "rate": 25 },
                { "use": "convert", "format": "\(format)" },
                { "id": "shown", "use": "window-preview", \(view.options) } ] }
            """)
        let program = try framehost.start(
            ["chain.json", "--events"], environment: screen.environment, folder: workspace.folder.path)
        try screen.ask("wait", "shown")
        #expect(try screen.ask("size", "shown") == [view.size])
        let sides = view.size.split(separator: "x").compactMap { Int($0) }
        let places = [(20, 20), (sides[0] - 20, 20), (20, sides[1] - 20), (sides[0] - 20, sides[1] - 20)]
        let corners = try screen.pixels("shown", places.map { "\($0),\($1)" }) {
            $0.count == 4 && zip($0, view.corners).allSatisfy(Self.isNear)
        }
        #expect(zip(corners, view.corners).allSatisfy(Self.isNear), "\(corners), not \(view.corners)")
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
    }

    /// SDL has no BT.709 in full range, no BT.2020 and no SMPTE 240M.
    @Test(
        .needs(Tool(name: "Xvfb")),
        arguments: [("bt709", "pc"), ("smpte170m", "pc"), ("bt709", "tv"), ("bt2020nc", "tv"), ("smpte240m", "pc")])
    func showsEveryRangeAndMatrix(matrix: String, range: String) throws {
        try writeQuarters()
        let made = try Tool(name: "ffmpeg").run(
            "-v", "error", "-loop", "1", "-i", workspace.path("quarters.png"), "-t", "2", "-vf",
            "format=gbrp,scale=out_color_matrix=\(matrix):out_range=\(range),format=yuv420p", "-c:v", "libx264", "-qp",
            "1", "-color_range", range, "-colorspace", matrix, "-color_primaries", "bt709", "-color_trc", "bt709",
            workspace.path("quarters.mp4"))
        guard made.status == 0 else { throw TestFault(made.error) }
        let screen = try Screen()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "clip", "use": "file-source", "path": "quarters.mp4", "pace": "realtime", "loop": true },
                { "id": "shown", "use": "window-preview" } ] }
            """)
        let program = try framehost.start(
            ["chain.json", "--events"], environment: screen.environment, folder: workspace.folder.path)
        let names = ["red", "green", "blue", "white"]
        let corners = try screen.pixels("shown", ["20,20", "300,20", "20,220", "300,220"]) {
            $0.count == 4 && zip($0, names).allSatisfy(Self.isNear)
        }
        #expect(zip(corners, names).allSatisfy(Self.isNear), "\(corners)")
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
    }

    @Test(.needs(Tool(name: "Xvfb"))) func severalWindowsKeysAndClosing() throws {
        try writeQuarters()
        let screen = try Screen()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "picture", "use": "image-source", "path": "quarters.png", "live": true, "seconds": 60, "rate": 25 },
                { "id": "one", "use": "window-preview", "from": "picture", "title": "first window" },
                { "id": "two", "use": "window-preview", "from": "picture", "mirror": "on" },
                { "id": "rest", "use": "null-sink", "from": "picture" } ] }
            """)
        let program = try framehost.start(
            ["chain.json", "--events", "--commands", "--verbose"], environment: screen.environment,
            folder: workspace.folder.path)
        for title in ["first window", "two"] { try screen.ask("wait", title) }
        try screen.ask("move", "first window", "0", "0")
        // Beside the other one when that has grown: what is covered has no pixels to ask for.
        try screen.ask("move", "two", "680", "500")
        func corner(_ title: String, _ name: String) throws -> Bool {
            Self.isNear(
                try screen.pixels(title, ["20,20"]) { $0.count == 1 && Self.isNear($0[0], name) }.first ?? [], name)
        }
        #expect(try corner("first window", "red"))
        #expect(try corner("two", "green"))
        // The picture goes with the window's size.
        try screen.ask("resize", "first window", "640", "480")
        #expect(
            Self.isNear(
                try screen.pixels("first window", ["600,40"]) { $0.count == 1 && Self.isNear($0[0], "green") }.first
                    ?? [], "green"))
        try screen.ask("key", "two", "s")
        try program.waitForOutput(#""key":"s""#)
        #expect(
            program.output.split(separator: "\n").contains {
                $0.contains(#""key":"s""#) && $0.contains(#""stage":"two""#)
            })
        try program.write(#"{ "stage": "two", "set": { "mirror": "off" }, "tag": 1 }"# + "\n")
        #expect(try corner("two", "red"))
        try screen.ask("close", "two")
        try program.waitForOutput(#""event":"window-closed""#)
        try screen.ask("wait", "two", "0")
        #expect(try corner("first window", "red"), "the other one stays")
        try program.write(#"{ "stage": "two", "command": "open", "tag": 2 }"# + "\n")
        try screen.ask("wait", "two")
        #expect(try corner("two", "red"))
        // The last window goes, and the thread of the windows with it; then there is one again.
        for title in ["first window", "two"] { try screen.ask("close", title) }
        for title in ["first window", "two"] { try screen.ask("wait", title, "0") }
        try program.write(#"{ "stage": "one", "command": "open", "tag": 3 }"# + "\n")
        #expect(try corner("first window", "red"))
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
    }

    @Test(.needs(Tool(name: "Xvfb"))) func aFrozenScreenHoldsUpNobody() throws {
        let screen = try Screen()
        try workspace.write(
            "chain.json",
            """
            { "drainSeconds": 30, "stages": [
                { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
                { "id": "shown", "use": "window-preview", "from": "camera" },
                { "id": "file", "use": "null-sink", "from": "camera", "link": { "whenFull": "wait" } } ] }
            """)
        let program = try framehost.start(
            ["chain.json", "--events", "--commands", "--stats", "stats.json"], environment: screen.environment,
            folder: workspace.folder.path)
        // A window is on the screen before its stage has begun.
        try program.waitForFrames(1)
        screen.freeze()
        try program.waitForOutput("The window 'shown' is frozen")
        let seen = try JSON(
            parsing: String(program.output.split(separator: "\n").last { $0.contains("is frozen") } ?? ""))
        try program.waitForFrames((seen["frame"].int ?? 0) + 400)
        #expect(program.output.contains(#""state":"recovering""#), "\(program.output)")
        screen.goOn()
        try program.waitForOutput("shows pictures again")
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        // A busy machine may cost some; a window that keeps pictures while it is frozen costs thirteen seconds of them.
        let stats = try JSON(file: workspace.path("stats.json"))
        let link = try #require(
            stats["links"].list.first { $0["from"].string == "camera" && $0["to"].string == "file" })
        let dropped = [stats["stages"].first("id", "camera")["dropped"], link["dropped"]].map { reasons in
            reasons.keys.reduce(0) { $0 + (reasons[$1].int ?? 0) }
        }
        #expect(dropped[0] + dropped[1] < 300, "\(dropped): \(stats["links"])")
    }

    /// libX11 ends a process whose server has gone, if it is let.
    @Test(.needs(Tool(name: "Xvfb"))) func aScreenThatDiesEndsOnlyTheWindow() throws {
        let screen = try Screen()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
                { "id": "shown", "use": "window-preview", "from": "camera", "onError": "continue" },
                { "id": "rest", "use": "null-sink", "from": "camera" } ] }
            """)
        let program = try framehost.start(
            ["chain.json", "--events", "--commands"], environment: screen.environment, folder: workspace.folder.path)
        // A window is on the screen before its stage has begun.
        try program.waitForFrames(1)
        screen.die()
        try program.waitForOutput(#""event":"stage-failed""#)
        let seen = try JSON(
            parsing: String(program.output.split(separator: "\n").last { $0.contains("stage-failed") } ?? ""))
        try program.waitForFrames((seen["frame"].int ?? 0) + 100)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("the display server has closed the connection"), "\(outcome.error)")
    }

    @Test func saysThatThereIsNoScreen() throws {
        try workspace.write(
            "chain.json", #"{ "stages": [ { "use": "test-source" }, { "id": "shown", "use": "window-preview" } ] }"#)
        let outcome = try framehost.run(
            ["chain.json", "--frames", "5"],
            environment: ["DISPLAY": "", "WAYLAND_DISPLAY": "", "SDL_VIDEODRIVER": "x11"], folder: workspace.folder.path
        )
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains("shown (window-preview): SDL found no screen for windows: '"),
            "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "Neither DISPLAY nor WAYLAND_DISPLAY is set: start framehost in a terminal of a desktop session, or on a text console with access to /dev/dri. Unset SDL_VIDEODRIVER=x11, so that SDL tries all its drivers. Without a screen, remove the stage from the chain."
            ), "\(outcome.error)")
    }
}
