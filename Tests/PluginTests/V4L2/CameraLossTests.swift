// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore
import Glibc
import Testing

@testable import V4L2Source

/// All that is said and shown of a camera that is lost, away and back: every event in every state, with its text, its
/// details and its time.
@Suite struct CameraLossTests {
    private let camera = ScriptedCamera()
    private let clock = ManualClock(at: 50_000_000_000)

    private enum Given: Equatable { case nothing, pictures, standIns, both }

    /// What happens to the camera, and what comes of it within some time.
    private struct Row {
        let line: Int
        let milliseconds: Int64
        let happens: (ScriptedCamera) -> Void
        let given: Given
        let recovering: String?
        let said: [String]

        init(
            _ milliseconds: Int64, _ given: Given, recovering: String? = nil, said: [String] = [], line: Int = #line,
            happens: @escaping (ScriptedCamera) -> Void = { _ in }
        ) {
            (self.line, self.milliseconds, self.happens) = (line, milliseconds, happens)
            (self.given, self.recovering, self.said) = (given, recovering, said)
        }
    }

    private func driver(_ options: String = "{}") throws -> StageDriver<V4L2Source> {
        camera.clock = clock
        let driver = try DeviceCallsInUse.$current.withValue(camera) {
            try StageDriver(V4L2Source.self, options: options, clock: clock)
        }
        // Notes of the plan.
        _ = driver.takeEvents()
        return driver
    }

    /// As a person and a program see it.
    private static func shown(_ event: Event) -> String {
        "\(event.level) \(event.name): \(event.text) \(event.details.text())"
    }

    private func play(_ driver: StageDriver<V4L2Source>, _ rows: [Row]) throws {
        for row in rows {
            row.happens(camera)
            let end = clock.now() + row.milliseconds * 1_000_000
            var (pictures, standIns) = (0, 0)
            while clock.now() < end {
                _ = try driver.produce()
                if driver.outputFormat?.video == nil {
                    while driver.takeAccessUnit() != nil { pictures += 1 }
                } else {
                    while let frame = driver.takeFrame() {
                        if frame.isSubstitute { standIns += 1 } else { pictures += 1 }
                    }
                }
            }
            let said = driver.takeEvents().map(Self.shown)
            let given: Given =
                pictures > 0 ? (standIns > 0 ? .both : .pictures) : standIns > 0 ? .standIns : .nothing
            #expect(said == row.said, "line \(row.line)")
            #expect(given == row.given, "line \(row.line)")
            #expect(driver.context.recovering == row.recovering, "line \(row.line)")
            let state = driver.stage.figures.json["state"]?.asString
            #expect((state == "streaming") == (row.recovering == nil), "line \(row.line)")
        }
    }

    private static let isGone = "the camera is lost: VIDIOC_DQBUF: No such device (ENODEV)"
    private static let isLost =
        #"warning camera-lost: The camera is lost: VIDIOC_DQBUF: No such device (ENODEV). It is opened again when it is back. {"reason":"VIDIOC_DQBUF: No such device (ENODEV)","shown":"hold"}"#
    private static let isInUse =
        "warning camera-refused: The stage keeps trying to open the camera, which is there but cannot be used: '/dev/video0' is in use. End the program that uses it. Only one program can use a camera. If this chain itself uses it, restart the chain to make this change.\n  VIDIOC_S_FMT: Device or resource busy (EBUSY) {}"
    private static let isForbidden =
        "warning camera-refused: The stage keeps trying to open the camera, which is there but cannot be used: this user may not open '/dev/video0'. Join the group 'video', which may open it: `sudo usermod -aG video $USER`. Then log in again.\n  open: Permission denied (EACCES) {}"

    private static func isBack(_ milliseconds: Int, there: String = "back", as path: String = "/dev/video0") -> String {
        #"info camera-back: The camera is \#(there) as \#(path), after \#(milliseconds) ms. {"path":"\#(path)","awayMs":\#(milliseconds)}"#
    }

    private static func refuse(_ camera: ScriptedCamera, _ code: Int32) {
        camera.faults[fh_vidioc_s_fmt] = Array(repeating: code, count: 100)
    }

    @Test func isLostLookedForRefusedAndBack() throws {
        let driver = try driver()
        try play(
            driver,
            [
                Row(1000, .pictures),
                Row(600, .standIns, recovering: Self.isGone, said: [Self.isLost]) { $0.isGone = ENODEV },
                // It is looked for after 100, 300 and 700 ms, and then each second.
                Row(400, .both, said: [Self.isBack(700)]) { $0.isGone = nil },
                Row(1600, .standIns, recovering: Self.isGone, said: [Self.isLost]) { $0.isGone = ENODEV },
                Row(2000, .standIns, recovering: Self.isGone),
                Row(1000, .both, said: [Self.isBack(4500)]) { $0.isGone = nil },
                // There, and in use.
                Row(300, .standIns, recovering: Self.isGone, said: [Self.isLost]) { $0.isGone = ENODEV },
                Row(1000, .standIns, recovering: Self.isGone, said: [Self.isInUse]) {
                    $0.isGone = nil
                    Self.refuse($0, EBUSY)
                },
                Row(2000, .standIns, recovering: Self.isGone),
                // For another reason.
                Row(1500, .standIns, recovering: Self.isGone, said: [Self.isForbidden]) {
                    $0.openFaults = Array(repeating: EACCES, count: 100)
                },
                Row(2000, .standIns, recovering: Self.isGone),
                // For the first reason again: each is said once.
                Row(2000, .standIns, recovering: Self.isGone) { $0.openFaults = [] },
                Row(1000, .both, said: [Self.isBack(9500)]) { $0.faults = [:] },
                // Said anew for another loss.
                Row(1000, .standIns, recovering: Self.isGone, said: [Self.isLost]) { $0.isGone = ENODEV },
                Row(3000, .both, said: [Self.isInUse, Self.isBack(3500)]) {
                    $0.isGone = nil
                    $0.faults[fh_vidioc_s_fmt] = [EBUSY, EBUSY]
                },
            ])
        #expect(driver.stage.figures.losses.load(ordering: .relaxed) == 4)
        try driver.stop()
    }

    /// It is back as soon as it is opened, whether it gives anything or not.
    @Test func isLostAgainAndAgainWhereItGivesNothing() throws {
        let lost =
            #"warning camera-lost: The camera is lost: no picture for 2002 ms. It is opened again when it is back. {"reason":"no picture for 2002 ms","shown":"slate"}"#
        let driver = try driver(#"{ "whileLost": "slate" }"#)
        try play(
            driver,
            [
                Row(200, .pictures),
                Row(2050, .standIns, recovering: "the camera is lost: no picture for 2002 ms", said: [lost]) {
                    $0.isStalled = true
                },
                Row(1000, .nothing, said: [Self.isBack(100)]),
                Row(1080, .standIns, recovering: "the camera is lost: no picture for 2002 ms", said: [lost]),
                Row(1000, .pictures, said: [Self.isBack(100)]) { $0.isStalled = false },
            ])
        try driver.stop()
    }

    @Test func isThereForTheFirstTime() throws {
        camera.nodes = []
        let missing = "there is no camera"
        let driver = try driver(#"{ "ifMissing": "wait", "size": "64x32", "rate": 25 }"#)
        #expect(driver.context.recovering == missing)
        try play(
            driver,
            [
                Row(500, .standIns, recovering: missing),
                Row(500, .standIns, recovering: missing, said: [Self.isInUse]) {
                    $0.nodes = ["/dev/video0"]
                    Self.refuse($0, EBUSY)
                },
                Row(1000, .standIns, recovering: missing),
                Row(1000, .both, said: [Self.isBack(2500, there: "there")]) { $0.faults = [:] },
                Row(200, .standIns, recovering: Self.isGone, said: [Self.isLost]) { $0.isGone = ENODEV },
                Row(200, .both, said: [Self.isBack(300)]) { $0.isGone = nil },
            ])
        #expect(driver.stage.figures.losses.load(ordering: .relaxed) == 1)
        try driver.stop()
    }

    @Test func goesBeforeItsStart() throws {
        camera.faults[fh_vidioc_s_fmt] = [ENODEV]
        let driver = try driver(#"{ "ifMissing": "wait" }"#)
        try play(driver, [Row(500, .both, said: [Self.isBack(100, there: "there")])])
        try driver.stop()
    }

    @Test func endsTheStageWhereNothingIsShown() throws {
        camera.nodes = []
        let driver = try driver(#"{ "ifMissing": "wait", "size": "64x32", "rate": 25, "whileLost": "stop" }"#)
        try play(
            driver,
            [
                Row(300, .nothing, recovering: "there is no camera"),
                Row(720, .pictures, said: [Self.isBack(700, there: "there")]) { $0.nodes = ["/dev/video0"] },
            ])
        camera.isGone = ENODEV
        let fault = #expect(throws: FrameHostError.self) { _ = try driver.produce() }
        #expect(
            fault?.description
                == "v4l2-source (v4l2-source): frame 8: /dev/video0: the camera is lost: VIDIOC_DQBUF: No such device (ENODEV). Start the chain again when the camera is back. Set \"whileLost\": \"hold\" to let the chain go on and open the camera again by itself."
        )
        #expect(driver.takeEvents().isEmpty && driver.context.recovering == nil)
        #expect(driver.stage.figures.json["state"]?.asString == "recovering")
        #expect(driver.stage.figures.losses.load(ordering: .relaxed) == 1)
        try driver.stop()
    }

    /// A camera's own H.264 cannot be stood in for.
    @Test func givesNoAccessUnitsWhileItIsAway() throws {
        camera.offers = [.init(code: "H264", sizes: [(64, 32)], intervals: [(1, 25)])]
        camera.compressedAt = { _ in
            [0, 0, 0, 1, 0x67, 66, 0, 30, 0x80, 0, 0, 0, 1, 0x68, 0xCE, 0x80, 0, 0, 1, 0x65, 0x88, 0x80]
        }
        let driver = try driver(#"{ "format": "h264", "size": "64x32", "rate": 25 }"#)
        let lost = String(Self.isLost.dropLast("hold\"}".count)) + "nothing\"}"
        try play(
            driver,
            [
                Row(200, .pictures),
                Row(250, .nothing, recovering: Self.isGone, said: [lost]) { $0.isGone = ENODEV },
                Row(1000, .pictures, said: [Self.isBack(700)]) { $0.isGone = nil },
            ])
        try driver.stop()
    }
}
