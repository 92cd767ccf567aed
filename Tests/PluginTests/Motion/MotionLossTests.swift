// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import Testing

@testable import Motion

/// `motion-source` with the device of a tree, whose samples are only counted.
private final class ScriptedSensor: Source {
    @TaskLocal static var places = IIOPlaces()

    static let info = MotionSource.info
    var options: MotionSourceOptions
    private let input: IIOInput
    private(set) var samples = 0
    private(set) var gaps = 0

    init(options: MotionSourceOptions, context: StageContext) {
        self.options = options
        input = IIOInput(
            options.device ?? "", rate: options.rate, context: context, reports: MotionReports(context),
            places: Self.places)
    }

    func negotiate() throws -> MediaFormat { .motion(try input.negotiate()) }
    func start() throws { try input.start() }
    func produce(_ output: Output) throws -> SourceProgress {
        var news: [MotionSample] = []
        if try input.take(into: &news) { gaps += 1 }
        samples += news.count
        return .more
    }
    func stop() { input.stop() }
}

/// All that is said of motion that is lost and comes again: every event in every state, with its text, its details and
/// its time.
@Suite struct MotionLossTests {
    private let clock = ManualClock(at: 50_000_000_000)

    private static func shown(_ event: Event) -> String {
        "\(event.level) \(event.name): \(event.text) \(event.details.text())"
    }

    private static func lost(_ reason: String, _ next: String) -> String {
        #"warning motion-lost: There is no motion: \#(reason). \#(next) {"reason":"\#(reason)"}"#
    }

    private static func isBack(_ milliseconds: Int) -> String {
        #"info motion-returned: Motion comes again, after \#(milliseconds) ms. {"awayMs":\#(milliseconds)}"#
    }

    // MARK: A device

    /// What happens to the device, and what comes of it in some calls.
    private struct Row {
        let line: Int
        let calls: Int
        let happens: (Sensor) throws -> Void
        let samples: Int
        let isGap: Bool
        let recovering: String?
        let said: [String]

        init(
            calls: Int = 1, samples: Int = 0, isGap: Bool = false, recovering: String? = nil, said: [String] = [],
            line: Int = #line, happens: @escaping (Sensor) throws -> Void = { _ in }
        ) {
            (self.line, self.calls, self.happens) = (line, calls, happens)
            (self.samples, self.isGap, self.recovering, self.said) = (samples, isGap, recovering, said)
        }
    }

    /// A device that is there, and what happens to it.
    private final class Sensor {
        let tree: IIODeviceTests.Tree
        let clock: ManualClock
        private var writer: Int32 = -1

        init(_ clock: ManualClock) throws {
            tree = try IIODeviceTests.Tree()
            self.clock = clock
        }

        deinit { unplugNode() }

        /// Its end of the pipe, which only opens while the stage has the other.
        func plugNode() throws {
            writer = open(tree.node, O_WRONLY | O_NONBLOCK)
            try #require(writer >= 0)
        }
        /// What a pulled device answers.
        func unplugNode() {
            if writer >= 0 { close(writer) }
            writer = -1
        }
        func give() {
            let scan = IIODeviceTests.scan([0, 0, 0, 0, 0, 0], clock.now())
            _ = write(writer, scan, scan.count)
        }
        func pass(_ milliseconds: Int64) { clock.advance(to: clock.now() + milliseconds * 1_000_000) }
        /// Takes a part of its folder away, or puts it back.
        func take(_ part: String, isThere: Bool = false) throws {
            let (path, away) = (tree.device + part, tree.root + "/" + part.filter { $0 != "/" } + "away")
            try FileManager.default.moveItem(atPath: isThere ? away : path, toPath: isThere ? path : away)
        }
    }

    private func play(_ rows: [Row]) throws {
        let sensor = try Sensor(clock)
        let driver = try ScriptedSensor.$places.withValue(sensor.tree.places) {
            try StageDriver(ScriptedSensor.self, options: #"{ "device": "imu6" }"#, isLive: true, clock: clock)
        }
        // Notes of the plan.
        _ = driver.takeEvents()
        try sensor.plugNode()
        for row in rows {
            try row.happens(sensor)
            let (samples, gaps) = (driver.stage.samples, driver.stage.gaps)
            for _ in 0..<row.calls { _ = try driver.produce() }
            let said = driver.takeEvents().map(Self.shown)
            #expect(said == row.said, "line \(row.line)")
            #expect(driver.stage.samples - samples == row.samples, "line \(row.line)")
            #expect((driver.stage.gaps > gaps) == row.isGap, "line \(row.line)")
            #expect(driver.context.recovering == row.recovering, "line \(row.line)")
        }
        try driver.stop()
    }

    private static let keepsTrying = "The stage keeps trying to open it again."
    private static let isGone = "the device 'imu6' is gone: No such device"
    private static let isSilent = "the device 'imu6' has given nothing for a second"
    private static let silent = lost(
        isSilent, "The stage keeps waiting. If this lasts, check `dmesg` for messages of the device's driver.")
    private static let noChannels =
        "the IIO device 'imu6' has no buffer with rotation rates or accelerations on three axes, or with an attitude"
    private static let isRefused =
        #"warning device-refused: The device was found again, but \#(noChannels). Name another IIO device. The stage keeps trying. {"reason":"\#(noChannels)"}"#
    private static let cannotBeSet =
        "'buffer/enable' of the sensor 'imu6' (iio:device1) cannot be set: Is a directory"
    private static let isRefusedAgain =
        #"warning device-refused: The device was found again, but \#(cannotBeSet). Check `dmesg` for messages of its driver. The stage keeps trying. {"reason":"\#(cannotBeSet)"}"#

    @Test func isLostLookedForRefusedAndBack() throws {
        try play([
            Row(samples: 1) { $0.give() },
            Row(recovering: Self.isGone, said: [Self.lost(Self.isGone, Self.keepsTrying)]) {
                $0.unplugNode()
                try $0.take("")
            },
            // It is looked for after 100, 300, 700 and 1500 ms; a call lasts 100 ms.
            Row(calls: 6, recovering: Self.isGone),
            // There, and of no use. Said once.
            Row(calls: 1, recovering: Self.isGone, said: [Self.isRefused]) {
                try $0.take("", isThere: true)
                try $0.take("/scan_elements")
            },
            Row(calls: 8, recovering: Self.isGone),
            // For another reason.
            Row(calls: 10, recovering: Self.isGone, said: [Self.isRefusedAgain]) {
                try $0.take("/scan_elements", isThere: true)
                try $0.take("/buffer/enable")
                mkdir("\($0.tree.device)/buffer/enable", 0o700)
            },
            Row(calls: 10, recovering: Self.isGone) {
                rmdir("\($0.tree.device)/buffer/enable")
                try $0.take("/buffer/enable", isThere: true)
            },
            // It is back with its first sample.
            Row(samples: 1, isGap: true, said: [Self.isBack(3500)]) {
                try $0.plugNode()
                $0.give()
            },
            Row(samples: 1) { $0.give() },
            // Said anew for another loss.
            Row(recovering: Self.isGone, said: [Self.lost(Self.isGone, Self.keepsTrying)]) {
                $0.unplugNode()
                try $0.take("/scan_elements")
            },
            Row(calls: 3, recovering: Self.isGone, said: [Self.isRefused]),
            Row(calls: 4, recovering: Self.isGone) { try $0.take("/scan_elements", isThere: true) },
            Row(samples: 1, isGap: true, said: [Self.isBack(700)]) {
                try $0.plugNode()
                $0.give()
            },
        ])
    }

    /// Without a sample it counts as lost after a second, and stays open. That it goes then is not said again.
    @Test func isSilentThenGivesAndThenIsGone() throws {
        try play([
            Row(samples: 1) { $0.give() },
            Row { $0.pass(1000) },
            Row(recovering: Self.isSilent, said: [Self.silent]) { $0.pass(1) },
            Row(recovering: Self.isSilent) { $0.pass(2000) },
            Row(samples: 1, isGap: true, said: [Self.isBack(3001)]) { $0.give() },
            Row(recovering: Self.isSilent, said: [Self.silent]) { $0.pass(1500) },
            Row(recovering: Self.isSilent) { $0.unplugNode() },
            // Opened after 100 ms, and gone at once; and once more.
            Row(calls: 3, recovering: Self.isSilent),
            Row(samples: 1, isGap: true, said: [Self.isBack(1700)]) {
                try $0.plugNode()
                $0.give()
            },
        ])
    }

    /// The node of a device that is pulled may say nothing.
    @Test func isGoneWhereOnlyItsFolderIs() throws {
        let gone = "the device 'imu6' is gone"
        try play([
            Row(samples: 1) { $0.give() },
            Row(recovering: gone, said: [Self.lost(gone, Self.keepsTrying)]) { try $0.take("") },
        ])
    }
}
