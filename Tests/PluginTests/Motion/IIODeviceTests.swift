// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import Testing

@testable import Motion

@Suite struct IIOElementTests {
    @Test func readsTheFormatsOfDrivers() throws {
        let plain = try #require(IIOElement("le:s16/16>>0"))
        #expect(plain.bits == 16 && plain.bytes == 2 && plain.isSigned && !plain.isBigEndian && plain.shift == 0)
        #expect(plain.value([0xFE, 0xFF], 0) == -2)
        let twelve = try #require(IIOElement("be:s12/16>>4"))
        #expect(twelve.value([0x00, 0x80, 0x0F], 1) == -2048 && twelve.value([0x7F, 0xF0], 0) == 2047)
        let unsigned = try #require(IIOElement("be:u24/32>>8"))
        #expect(unsigned.value([0xFF, 0xFF, 0xFF, 0x12], 0) == 0xFFFFFF)
        let four = try #require(IIOElement("le:s32/32X4>>0"))
        #expect(four.count == 4 && four.byteCount == 16)
        let parts = [UInt8](repeating: 0, count: 12) + [5, 0, 0, 0x80]
        #expect(four.value(parts[...], 0, 3) == Int64(Int32.min) + 5)
        let time = try #require(IIOElement("le:s64/64>>0"))
        #expect(time.value([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 0) == -1)
    }

    @Test(arguments: [
        "", "le", "le:", "xe:s16/16>>0", "le:f32/32>>0", "le:s16", "le:s16/16", "le:s16/16>>", "le:s0/16>>0",
        "le:s17/16>>0",
        "le:s16/24>>0", "le:s16/16>>16", "le:s12/16>>8", "le:s16/16X0>>0", "le:s16/16X17>>0", "le:s16/16X>>0",
        "le:s-1/16>>0", "le:s16/16>>-1", "le:s99999999999999999999/16>>0", "le:s16/16X2X2>>0",
    ]) func refusesOthers(text: String) { #expect(IIOElement(text) == nil) }

    private func channel(_ name: String, _ index: Int, _ type: String) -> IIOLayout.Channel {
        IIOLayout.Channel(name: name, index: index, element: IIOElement(type)!)
    }

    @Test func laysChannelsOutAsTheKernelDoes() throws {
        let imu = try #require(
            IIOLayout(
                [channel("in_timestamp", 6, "le:s64/64>>0")]
                    + ["z", "y", "x"].enumerated().map { channel("in_accel_\($1)", 2 - $0, "be:s16/16>>0") }
                    + ["x", "y", "z"].enumerated().map { channel("in_anglvel_\($1)", 3 + $0, "be:s16/16>>0") }))
        #expect(imu.scanBytes == 24 && imu.channels.map(\.offset) == [0, 2, 4, 6, 8, 10, 16])
        #expect(imu.contents == [.acceleration, .rotationRate])
        // As seen from HID sensors: four numbers, eight unused bytes, the time.
        let turn = try #require(
            IIOLayout([channel("in_rot_quaternion", 0, "le:s32/32X4>>0"), channel("in_timestamp", 1, "le:s64/64>>0")]))
        #expect(turn.scanBytes == 32 && turn.channels.map(\.offset) == [0, 24] && turn.contents == .attitude)
        let accel = try #require(
            IIOLayout(
                ["x", "y", "z"].enumerated().map { channel("in_accel_\($1)", $0, "le:s32/32>>0") }
                    + [channel("in_timestamp", 3, "le:s64/64>>0")]))
        #expect(accel.scanBytes == 24 && accel.channels.last?.offset == 16)
        #expect(IIOLayout([]) == nil)
    }
}

/// Against a tree of files like sysfs, and a pipe in place of the device's node.
@Suite struct IIODeviceTests {
    final class Tree {
        let root: String
        let places: IIOPlaces
        var device: String { "\(root)/devices/iio:device1" }
        var node: String { "\(root)/dev/iio:device1" }

        init() throws {
            root = NSTemporaryDirectory() + "iio-test-\(UUID().uuidString)"
            places = IIOPlaces(devices: "\(root)/devices", nodes: "\(root)/dev")
            for folder in [
                "dev", "devices/iio:device0", "devices/iio:device1/scan_elements", "devices/iio:device1/buffer",
            ] {
                try FileManager.default.createDirectory(atPath: "\(root)/\(folder)", withIntermediateDirectories: true)
            }
            try set("../iio:device0/name", "als")
            try set("name", "imu6")
            try set("current_timestamp_clock", "realtime")
            try set("sampling_frequency", "200.000000")
            try set("in_accel_scale", "0.01")
            try set("in_anglvel_scale", "0.001")
            try set("in_anglvel_offset", "10")
            try set("in_accel_mount_matrix", "0, 1, 0; -1, 0, 0; 0, 0, 1")
            for name in ["length", "watermark", "enable"] { try set("buffer/\(name)", "0") }
            for (index, name) in ["accel_x", "accel_y", "accel_z", "anglvel_x", "anglvel_y", "anglvel_z"].enumerated() {
                try add("in_\(name)", index, "le:s16/16>>0")
            }
            try add("in_timestamp", 6, "le:s64/64>>0")
            mkfifo(node, 0o600)
            // Of a pipe without a reader.
            signal(SIGPIPE, SIG_IGN)
        }

        func add(_ name: String, _ index: Int, _ type: String) throws {
            try set("scan_elements/\(name)_index", "\(index)")
            try set("scan_elements/\(name)_type", type)
            try set("scan_elements/\(name)_en", "0")
        }

        func set(_ attribute: String, _ text: String) throws {
            try "\(text)\n".write(toFile: "\(device)/\(attribute)", atomically: false, encoding: .utf8)
        }

        func get(_ attribute: String) throws -> String {
            // Regular files keep the rest of what was there before; sysfs does not.
            String(try String(contentsOfFile: "\(device)/\(attribute)", encoding: .utf8).split(separator: "\n")[0])
        }

        deinit { try? FileManager.default.removeItem(atPath: root) }
    }

    static func scan(_ values: [Int16], _ stamp: Int64) -> [UInt8] {
        values.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] } + [0, 0, 0, 0]
            + (0..<8).map { UInt8(truncatingIfNeeded: stamp >> (8 * Int64($0))) }
    }

    private static func input(
        _ tree: Tree, rate: Double? = nil, clock: ChainClock = ChainClock()
    ) -> (IIOInput, StageContext) {
        let context = StageContext(stageID: "imu", clock: clock)
        return (
            IIOInput("imu6", rate: rate, context: context, reports: MotionReports(context), places: tree.places),
            context
        )
    }

    @Test func findsTheDeviceByNameOrNumber() throws {
        let tree = try Tree()
        for name in ["imu6", "iio:device1"] {
            let device = try IIODevice(name, places: tree.places)
            #expect(device.id == "iio:device1" && device.name == "imu6" && device.rate == 200)
            #expect(device.contents == [.rotationRate, .acceleration])
        }
        let missing = #expect(throws: IIOFault.self) { try IIODevice("gyro", places: tree.places) }
        #expect(missing?.what == "there is no IIO device 'gyro'" && missing?.isMissing == true)
        #expect(missing?.remedy == "Name one that measures motion: imu6 (iio:device1).")
        #expect(throws: IIOFault.self) { try IIODevice("als", places: tree.places) }
        let none = #expect(throws: IIOFault.self) { try IIODevice("x", places: IIOPlaces(devices: "/nowhere")) }
        #expect(none?.remedy == "Connect a motion sensor that has an IIO driver: /nowhere lists none now.")
    }

    @Test func setsTheBufferUp() throws {
        let tree = try Tree()
        // Left on by another program.
        try tree.add("in_magn_x", 7, "le:s16/16>>0")
        try tree.set("scan_elements/in_magn_x_en", "1")
        let (input, _) = Self.input(tree, rate: 100)
        #expect(try input.negotiate() == MotionFormat(contents: [.rotationRate, .acceleration], sampleRate: 100))
        #expect(try tree.get("buffer/enable") == "0")
        try input.start()
        #expect(try tree.get("current_timestamp_clock").hasPrefix("monotonic"))
        #expect(try tree.get("sampling_frequency").hasPrefix("100"))
        for name in ["in_accel_x", "in_anglvel_z", "in_timestamp"] {
            #expect(try tree.get("scan_elements/\(name)_en") == "1")
        }
        #expect(try tree.get("scan_elements/in_magn_x_en") == "0")
        #expect(try (Int(tree.get("buffer/length")) ?? 0) >= 100 && tree.get("buffer/watermark") == "2")
        #expect(try tree.get("buffer/enable") == "1")
        input.stop()
        #expect(try tree.get("buffer/enable") == "0")
    }

    @Test func readsScansWithTheirTimes() throws {
        let tree = try Tree()
        let (input, context) = Self.input(tree, clock: ManualClock(at: 10_000_000_000))
        _ = try input.negotiate()
        try input.start()
        let writer = open(tree.node, O_WRONLY)
        defer { close(writer) }
        let now = context.clock.now()
        let bytes = (0..<3).flatMap { index in
            Self.scan([100, 200, -300, 990, -10, Int16(index)], now - 15_000_000 + Int64(index) * 5_000_000)
        }
        #expect(write(writer, bytes, bytes.count) == 72)
        var samples: [MotionSample] = []
        #expect(try !input.take(into: &samples))
        #expect(samples.map(\.time.nanoseconds) == (0..<3).map { now - 15_000_000 + $0 * 5_000_000 })
        let first = try #require(samples.first)
        // (raw + offset) · scale, then the mount matrix.
        #expect(distance(first.rotationRate, SIMD3(1, 0, 0.01)) < 1e-6)
        #expect(distance(first.acceleration, SIMD3(2, -1, -3)) < 1e-6)
        // Nothing more: no samples, and no loss.
        samples = []
        #expect(try !input.take(into: &samples) && samples.isEmpty && context.recovering == nil)
        input.stop()
    }

    @Test func aClockOfItsOwnIsMapped() throws {
        let tree = try Tree()
        let (input, context) = Self.input(tree)
        _ = try input.negotiate()
        try input.start()
        let writer = open(tree.node, O_WRONLY)
        defer { close(writer) }
        let bytes = Self.scan([0, 0, 0, 0, 0, 0], 42) + Self.scan([0, 0, 0, 0, 0, 0], 5_000_042)
        _ = write(writer, bytes, bytes.count)
        var samples: [MotionSample] = []
        let before = context.clock.now()
        _ = try input.take(into: &samples)
        let after = context.clock.now()
        let times = samples.map(\.time.nanoseconds)
        #expect(times.count == 2 && times[1] - times[0] == 5_000_000)
        #expect((before...after).contains(times[1]))
        input.stop()
    }

    @Test func isOpenedAgainWhenItIsBack() throws {
        let tree = try Tree()
        let (input, context) = Self.input(tree)
        _ = try input.negotiate()
        try input.start()
        var writer = open(tree.node, O_WRONLY)
        let scan = Self.scan([0, 0, 0, 0, 0, 0], context.clock.now())
        _ = write(writer, scan, scan.count)
        var samples: [MotionSample] = []
        _ = try input.take(into: &samples)
        #expect(samples.count == 1)
        // Its end of the pipe closed: what a pulled device answers.
        close(writer)
        try FileManager.default.moveItem(atPath: tree.device, toPath: tree.device + ".away")
        _ = try input.take(into: &samples)
        #expect(context.recovering?.hasPrefix("the device 'imu6' is gone") == true)
        for _ in 0..<3 { _ = try input.take(into: &samples) }
        #expect(samples.count == 1)
        try FileManager.default.moveItem(atPath: tree.device + ".away", toPath: tree.device)
        var isGap = false
        writer = -1
        for _ in 0..<100 where samples.count == 1 {
            if writer < 0 { writer = open(tree.node, O_WRONLY | O_NONBLOCK) }
            if writer >= 0 {
                let scan = Self.scan([0, 0, 0, 0, 0, 0], context.clock.now())
                _ = write(writer, scan, scan.count)
            }
            isGap = try input.take(into: &samples) || isGap
        }
        #expect(samples.count > 1 && isGap && context.recovering == nil)
        if writer >= 0 { close(writer) }
        input.stop()
    }

    @Test func nonsenseInItsAttributesIsNoTrap() throws {
        let tree = try Tree()
        for (attribute, text) in [
            ("in_accel_scale", "nan"), ("in_anglvel_scale", "x"), ("sampling_frequency", "-1e99"),
            ("in_accel_mount_matrix", "1, 2"), ("scan_elements/in_accel_x_index", "-7"),
            ("scan_elements/in_anglvel_y_index", "99999999999999999999"),
            ("scan_elements/in_timestamp_type", "le:s16/16>>0"),
        ] {
            let before = try tree.get(attribute)
            try tree.set(attribute, text)
            let (input, _) = Self.input(tree)
            do {
                _ = try input.negotiate()
                try input.start()
            } catch {
                #expect(error is FrameHostError)
            }
            input.stop()
            try tree.set(attribute, before)
        }
    }
}
