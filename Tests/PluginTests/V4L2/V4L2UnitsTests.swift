// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore
import Foundation
import Glibc
import Testing

@testable import V4L2Source

/// A camera's own H.264, passed on as access units.
@Suite struct V4L2UnitsTests {
    private let camera = ScriptedCamera()
    private let clock = ManualClock(at: 50_000_000_000)

    init() {
        camera.offers = [
            .init(code: "YUYV", sizes: [(64, 32)], intervals: [(1, 25)]),
            .init(code: "H264", sizes: [(64, 32)], intervals: [(1, 25)]),
        ]
        camera.compressedAt = { Self.unit($0) }
    }

    private static let sets: [UInt8] = [0, 0, 0, 1, 0x67, 66, 0, 30, 0x80, 0, 0, 0, 1, 0x68, 0xCE, 0x80]

    /// A keyframe each ten pictures, with its sets as a camera gives them.
    private static func unit(_ number: UInt32, sets: [UInt8] = sets) -> [UInt8] {
        number % 10 == 0 ? sets + slice(number, isKeyframe: true) : slice(number)
    }

    private static func slice(_ number: UInt32, isKeyframe: Bool = false) -> [UInt8] {
        [0, 0, 1, isKeyframe ? 0x65 : 0x41, 0x88, UInt8(truncatingIfNeeded: number) | 0x80]
    }

    private static func sps(_ level: UInt8) -> [UInt8] { [0, 0, 0, 1, 0x67, 66, 0, level, 0x80] }
    /// Number 0 or 1 (1 and 010).
    private static func pps(_ number: Int, _ rest: UInt8) -> [UInt8] {
        [0, 0, 0, 1, 0x68, (number == 0 ? 0x80 : 0x40) | rest]
    }

    private func driver(_ options: String = "") throws -> StageDriver<V4L2Source> {
        camera.clock = clock
        return try DeviceCallsInUse.$current.withValue(camera) {
            try StageDriver(
                V4L2Source.self, options: #"{ "format": "h264", "size": "64x32", "rate": 25 \#(options) }"#,
                clock: clock)
        }
    }

    private func fault(_ options: String = "") -> String {
        do {
            _ = try driver(options)
            return ""
        } catch {
            return (error as? FrameHostErrors).map { $0.errors.map(\.description).joined(separator: "\n") }
                ?? FrameHostError.wrap(error).description
        }
    }

    private struct Unit: Equatable {
        var bytes: [UInt8]
        var pts: Int64
        var isKeyframe: Bool
        var isDiscontinuity: Bool
    }

    /// Calls the source until it has given so many units.
    private func units(_ driver: StageDriver<V4L2Source>, _ count: Int, calls: Int = 5000) throws -> [Unit] {
        var units: [Unit] = []
        for _ in 0..<calls where units.count < count {
            if let unit = driver.takeAccessUnit() {
                #expect(unit.pts == unit.dts && unit.capturedAt == unit.pts.nanoseconds)
                #expect(unit.duration.nanoseconds == 40_000_000)
                units.append(
                    Unit(
                        bytes: unit.withBytes { Array($0) }, pts: unit.pts.nanoseconds, isKeyframe: unit.isKeyframe,
                        isDiscontinuity: unit.isDiscontinuity))
            } else {
                guard try driver.produce() == .more else { break }
            }
        }
        return units
    }

    private func figure(_ driver: StageDriver<V4L2Source>, _ name: String) -> Int? {
        driver.stage.figures.json[name]?.asInt
    }

    // MARK: What goes on

    @Test func passesOnWhatTheCameraEncodesFromAKeyframeOn() throws {
        camera.sequence = 3
        let driver = try driver()
        let format = try #require(driver.outputFormat?.encoded)
        #expect(format.parameterSets == Self.sets && format.framing == .annexB && format.codec == .h264)
        #expect(format.video?.width == 64 && format.video?.height == 32 && format.video?.frameRate == Rational(25))
        camera.sequence = 15
        let begin = clock.now()
        let seen = try units(driver, 30)
        #expect(seen.map(\.bytes) == (20..<50).map { Self.unit($0) })
        // The driver's own times: 5 pictures before the first keyframe.
        #expect(seen.map(\.pts) == (0..<30).map { begin + Int64($0 + 6) * 40_000_000 })
        #expect(seen.map(\.isKeyframe) == (0..<30).map { $0 % 10 == 0 })
        #expect(seen.allSatisfy { !$0.isDiscontinuity })
        #expect(figure(driver, "passed") == 30 && figure(driver, "untilKeyframe") == 5)
        #expect(
            driver.takeEvents().map(\.text).contains {
                $0
                    == "the camera's own H.264 is passed on, 1 copy per access unit; the camera cannot make keyframes on request."
            })
        try driver.stop()
        #expect(camera.mapped == camera.unmapped && camera.opened == camera.closed)
    }

    /// Two of the drivers in the kernel give them so unless told otherwise.
    @Test func putsParameterSetsThatCameAloneInFrontOfEachKeyframe() throws {
        camera.compressedAt = { number in
            number == 0 ? Self.sets : Self.slice(number, isKeyframe: number % 5 == 1)
        }
        let driver = try driver()
        let seen = try units(driver, 10)
        #expect(seen.filter(\.isKeyframe).count == 2)
        for unit in seen where unit.isKeyframe { #expect(unit.bytes.starts(with: Self.sets + [0, 0, 1, 0x65])) }
        for unit in seen where !unit.isKeyframe { #expect(unit.bytes.starts(with: [0, 0, 1, 0x41])) }
    }

    @Test func putsParameterSetsThatCameOneByOneInFrontOfEachKeyframe() throws {
        let (sequence, picture) = (Array(Self.sets[..<9]), Array(Self.sets[9...]))
        camera.compressedAt = { number in
            switch number % 12 {
            case 0: sequence
            case 1: picture
            default: Self.slice(number, isKeyframe: number % 12 == 2)
            }
        }
        let driver = try driver()
        #expect(driver.outputFormat?.encoded?.parameterSets == Self.sets)
        let seen = try units(driver, 20)
        #expect(seen.filter(\.isKeyframe).count == 2)
        for unit in seen where unit.isKeyframe { #expect(unit.bytes.starts(with: Self.sets + [0, 0, 1, 0x65])) }
        #expect(figure(driver, "damaged") == 0)
        #expect(!driver.takeEvents().contains { $0.name == "parameter-sets-changed" })
    }

    /// The headers of recordings and stream descriptions have only these.
    @Test func readsEachPPSThatComesBeforeTheFirstPicture() throws {
        let parts = [Self.sps(30), Self.pps(0, 1), Self.pps(1, 1)]
        let all = parts.flatMap { $0 }
        camera.compressedAt = { number in
            let place = Int(number % 14)
            return place < 3 ? parts[place] : Self.slice(number, isKeyframe: place == 3)
        }
        let driver = try driver()
        #expect(driver.outputFormat?.encoded?.parameterSets == all)
        let seen = try units(driver, 20)
        #expect(seen.filter(\.isKeyframe).count == 2)
        for unit in seen where unit.isKeyframe { #expect(unit.bytes.starts(with: all + [0, 0, 1, 0x65])) }
        #expect(!driver.takeEvents().contains { $0.name == "parameter-sets-changed" })
    }

    @Test func takesParameterSetsAfterWhichNoPictureComes() throws {
        camera.compressedAt = { _ in Self.sets }
        #expect(try driver().outputFormat?.encoded?.parameterSets == Self.sets)
    }

    private typealias Step = (bytes: [UInt8], verdict: UnitStream.Verdict, sets: [UInt8])

    private func follow(_ steps: [Step]) {
        var stream = UnitStream()
        for (number, step) in steps.enumerated() {
            let verdict = step.bytes.withUnsafeBytes { stream.look(at: $0) }
            #expect(verdict == step.verdict && stream.sets == step.sets, "step \(number): \(verdict), \(stream.sets)")
        }
    }

    /// The PPS may be lost with its buffer. With the old one the picture would be decoded wrongly.
    @Test func aKeyframeWaitsForThePPSOfANewSPS() {
        let (old, new) = (Self.sps(30), Self.sps(31))
        let pps = Self.pps(0, 1)
        follow([
            (old, .noPicture, []),
            (pps, .noPicture, old + pps),
            (Self.slice(0, isKeyframe: true), .give(isKeyframe: true, needsSets: true), old + pps),
            (new, .noPicture, []),
            (Self.slice(1), .give(isKeyframe: false, needsSets: false), []),
            (Self.slice(2, isKeyframe: true), .awaitsKeyframe, []),
            (Self.slice(3), .awaitsKeyframe, []),
            (new, .noPicture, []),
            (Self.slice(4, isKeyframe: true), .awaitsKeyframe, []),
            (new, .noPicture, []),
            // The same as before, and it is the new one's.
            (pps, .noPicture, new + pps),
            (Self.slice(5, isKeyframe: true), .give(isKeyframe: true, needsSets: true), new + pps),
        ])
    }

    @Test func aKeyframeThatWasLeftOutIsAGap() throws {
        let pps = Array(Self.sets[9...])
        camera.compressedAt = { number in
            switch number {
            case ..<20: Self.unit(number)
            case 20: Self.sps(31)
            case 25: pps
            default: Self.slice(number, isKeyframe: number == 21 || number == 26)
            }
        }
        let driver = try driver()
        let seen = try units(driver, 11)
        #expect(seen.dropLast().map(\.bytes) == (10..<20).map { Self.unit($0) })
        #expect(seen.last?.bytes == Self.sps(31) + pps + Self.slice(26, isKeyframe: true))
        #expect(seen.map(\.isDiscontinuity) == Array(repeating: false, count: 10) + [true])
        // Nine before the first keyframe, and four from the keyframe on that was left out.
        #expect(figure(driver, "untilKeyframe") == 13 && figure(driver, "damaged") == 0)
    }

    /// Sets of ever more numbers do not keep out the next ones.
    @Test func newSetsReplaceAllWhereTheyDoNotFitBesideThem() {
        let sps = Self.sps(30)
        let large = Self.pps(0, 1) + [UInt8](repeating: 0xAA, count: 4060)
        let small = Self.pps(1, 1) + [UInt8](repeating: 0xAA, count: 100)
        follow([
            (sps + large, .noPicture, sps + large),
            (small, .noPicture, []),
            (Self.slice(0, isKeyframe: true), .awaitsKeyframe, []),
            (sps, .noPicture, sps + small),
            (Self.slice(1, isKeyframe: true), .give(isKeyframe: true, needsSets: true), sps + small),
        ])
    }

    /// Thousands of sets in a buffer would be compared with hundreds of known ones, for each picture.
    @Test func countsTheBytesOfABuffersSetsBeforeItComparesThem() {
        func tiny(_ count: Int) -> [UInt8] {
            Array(repeating: [0, 0, 1, 0x68] as [UInt8], count: count).flatMap { $0 }
        }
        let known: [UInt8] = Self.sps(30) + Array(repeating: [0, 0, 0, 1, 0x68] as [UInt8], count: 800).flatMap { $0 }
        let keyframe = Self.slice(0, isKeyframe: true)
        follow([
            (Self.sps(30) + tiny(800) + keyframe, .give(isKeyframe: true, needsSets: false), known),
            // Every one is known.
            (tiny(820) + Self.slice(1), .damaged("its parameter sets have 4100 bytes, more than 4096"), known),
            (Self.slice(2), .awaitsKeyframe, known),
            (tiny(819) + Self.slice(3), .awaitsKeyframe, known),
            (keyframe, .give(isKeyframe: true, needsSets: true), known),
        ])
    }

    @Test func aSetTakesThePlaceOfTheOneOfItsKindAndNumber() {
        func sps(_ level: UInt8) -> [UInt8] { Self.sps(level) }
        func pps(_ number: Int, _ rest: UInt8) -> [UInt8] { Self.pps(number, rest) }
        let steps: [(bytes: [UInt8], sets: [UInt8], hasChanged: Bool)] = [
            (pps(1, 1), [], false),
            (sps(30), sps(30) + pps(1, 1), false),
            (pps(0, 1), sps(30) + pps(1, 1) + pps(0, 1), true),
            (pps(1, 2), sps(30) + pps(0, 1) + pps(1, 2), true),
            (sps(31), [], true),
            (pps(0, 1), sps(31) + pps(0, 1) + pps(1, 2), true),
        ]
        var stream = UnitStream()
        for (bytes, sets, hasChanged) in steps {
            let verdict = bytes.withUnsafeBytes { stream.look(at: $0) }
            #expect(verdict == .noPicture)
            #expect(stream.sets == sets && stream.setsHaveChanged == hasChanged, "\(bytes)")
        }
    }

    /// Only the SPS changes, and no PPS comes again.
    @Test func aPPSStaysWhereTheCameraGivesNoOther() {
        var stream = UnitStream()
        func look(_ bytes: [UInt8]) -> UnitStream.Verdict { bytes.withUnsafeBytes { stream.look(at: $0) } }
        let keyframe: [UInt8] = [0, 0, 0, 1, 0x65, 0x88]
        #expect(look(Self.sps(30) + Self.pps(0, 1) + keyframe) == .give(isKeyframe: true, needsSets: false))
        #expect(look(Self.sps(31)) == .noPicture)
        for _ in 0..<2 { #expect(look(keyframe) == .awaitsKeyframe) }
        #expect(look(keyframe) == .give(isKeyframe: true, needsSets: true))
        #expect(stream.sets == Self.sps(31) + Self.pps(0, 1))
        // Each change waits anew.
        for _ in 0..<2 { #expect(look(Self.sps(32) + keyframe) == .awaitsKeyframe) }
        #expect(look(Self.sps(32) + keyframe) == .give(isKeyframe: true, needsSets: true))
    }

    /// What comes without a picture costs none.
    @Test func leavesOutBuffersOfDelimitersAndMessages() throws {
        let asides: [[UInt8]] = [
            [0, 0, 0, 1, 9, 0xF0], [0, 0, 1, 6, 5, 1, 0, 0x80], [0, 0, 1, 0x67, 66, 0, 30, 0x80],
        ]
        camera.compressedAt = { number in
            number % 2 == 1 ? asides[Int(number / 2) % 3] : Self.unit(number / 2)
        }
        let driver = try driver()
        #expect(try units(driver, 12).count == 12)
        #expect(figure(driver, "damaged") == 0)
    }

    @Test func aLossEndsAtTheNextKeyframe() throws {
        camera.makesKeyframes = true
        let driver = try driver()
        _ = try units(driver, 3)
        let asked = camera.keyframesAsked
        camera.gap = 2
        let behindGap = try units(driver, 1)
        #expect(behindGap.first?.isKeyframe == true && behindGap.first?.isDiscontinuity == true)
        #expect(figure(driver, "missed") == 2)
        #expect(camera.keyframesAsked == asked + 1)
        _ = try units(driver, 3)
        var isFirst = true
        camera.spoilBuffer = {
            if isFirst { $0.flags |= UInt32(V4L2_BUF_FLAG_ERROR) }
            isFirst = false
        }
        let behindDamage = try units(driver, 2)
        #expect(behindDamage.map(\.isKeyframe) == [true, false])
        #expect(behindDamage.map(\.isDiscontinuity) == [true, false])
        #expect(figure(driver, "damaged") == 1)
    }

    @Test func handsRequestsForKeyframesToACameraThatMakesThem() throws {
        #expect(try driver().stage.demand.makesKeyframes == false)
        camera.makesKeyframes = true
        let driver = try driver()
        #expect(driver.stage.demand.makesKeyframes)
        _ = try units(driver, 1)
        let asked = camera.keyframesAsked
        driver.requestKeyframe()
        driver.requestKeyframe()
        _ = try units(driver, 1)
        #expect(camera.keyframesAsked == asked + 1)
    }

    // MARK: Away

    @Test func givesNothingWhileTheCameraIsAwayAndBeginsWithAKeyframe() throws {
        let driver = try driver()
        let before = try units(driver, 4)
        camera.isGone = ENODEV
        #expect(try units(driver, 1, calls: 100).isEmpty)
        camera.isGone = nil
        // Another session of the camera's encoder.
        let others = Self.sets.map { $0 == 30 ? 31 : $0 }
        camera.compressedAt = { Self.unit($0, sets: others) }
        camera.sequence = 7
        let after = try units(driver, 12)
        #expect(after.map(\.bytes) == (10..<22).map { Self.unit($0, sets: others) })
        #expect(after.first?.isDiscontinuity == true && after.dropFirst().allSatisfy { !$0.isDiscontinuity })
        let times = (before + after).map(\.pts)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        let events = driver.takeEvents()
        #expect(events.first { $0.name == "camera-lost" }?.details["shown"]?.asString == "nothing")
        #expect(events.count { $0.name == "parameter-sets-changed" } == 1)
        #expect(driver.stage.demand.ownBytes == 0)
    }

    @Test func refusesWhatAccessUnitsCannotShow() {
        #expect(
            fault(#", "whileLost": "slate""#).contains(
                "'whileLost' cannot be \"slate\" with \"format\": \"h264\", because there is no encoder for the slate"
            ))
        #expect(
            fault(#", "ifMissing": "wait""#).contains(
                "'ifMissing' cannot be \"wait\" with \"format\": \"h264\", which needs the camera's parameter sets"
            ))
    }

    // MARK: What is chosen

    @Test func isChosenOnlyWhereItIsAskedFor() throws {
        camera.offers.swapAt(0, 1)
        camera.clock = clock
        camera.compressedAt = nil
        let plain = try DeviceCallsInUse.$current.withValue(camera) {
            try StageDriver(V4L2Source.self, options: #"{ "size": "64x32" }"#, clock: clock)
        }
        #expect(plain.outputFormat?.video?.pixelFormat == .yuyv)
        camera.offers = [.init(code: "H264", sizes: [(64, 32)], intervals: [(1, 25)])]
        let fault = #expect(throws: FrameHostError.self) {
            try DeviceCallsInUse.$current.withValue(camera) { try StageDriver(V4L2Source.self, clock: clock) }
        }
        #expect(fault?.remedy == "Set \"format\": \"h264\" to pass on what the camera encodes.")
        camera.offers = [.init(code: "YUYV", sizes: [(64, 32)], intervals: [(1, 25)])]
        #expect(self.fault().contains("'/dev/video0' does not support h264; it has YUYV."))
    }

    @Test func refusesACameraWhoseParameterSetsDoNotCome() {
        camera.compressedAt = { Self.slice($0) }
        #expect(
            fault()
                == "format: '/dev/video0' gives no H.264 with parameter sets: none came in 600 access units. Use another 'format' with an encoder after this stage."
        )
        camera.isStalled = true
        #expect(fault().contains("'/dev/video0' gave no picture within 5 s"))
        #expect(camera.opened == camera.closed && camera.mapped == camera.unmapped)
    }

    // MARK: Hostile drivers

    /// None is read beyond the buffer, none goes on, and the stream goes on with a keyframe.
    @Test func leavesOutWhatCannotBeAnAccessUnit() throws {
        let driver = try driver()
        _ = try units(driver, 1)
        let spoils: [(inout v4l2_buffer) -> Void] = [
            { $0.bytesused = .max }, { $0.bytesused = 64 * 32 * 2 + 1 }, { $0.bytesused = 0 },
        ]
        for (number, spoil) in spoils.enumerated() {
            var isFirst = true
            camera.spoilBuffer = {
                if isFirst { spoil(&$0) }
                isFirst = false
            }
            let next = try units(driver, 1)
            #expect(next.first?.isKeyframe == true)
            #expect(figure(driver, "damaged") == number + 1)
        }
        camera.spoilBuffer = { _ in }
        let odd: [[UInt8]] = [
            [0], [0, 0, 0, 0], [0, 0, 1], [0, 0, 0, 1], [1, 2, 3, 4], [UInt8](repeating: 0, count: 4000),
            [UInt8](repeating: 0xFF, count: 4096),
            [0, 0, 1, 0x67] + [UInt8](repeating: 0xAA, count: 3000) + [0, 0, 1, 0x68]
                + [UInt8](repeating: 1, count: 900),
            [0, 0, 1, 0x67] + [UInt8](repeating: 1, count: 4080) + [0, 0, 1, 0x68, 1],
        ]
        let good = camera.compressedAt!
        for bytes in odd {
            let at = camera.sequence
            camera.compressedAt = { $0 == at ? bytes : good($0) }
            let seen = try units(driver, 12)
            #expect(seen.count == 12 && seen.allSatisfy { $0.bytes != bytes })
        }
    }

    @Test(arguments: [UInt32(1) << 30 + 1, .max]) func refusesSizesThatNoPictureHas(bytes: UInt32) {
        camera.spoil = { $0.sizeimage = bytes }
        #expect(fault().hasPrefix("the camera's driver gives "))
    }

    /// What it says of its largest picture is not what is reserved for one.
    @Test func reservesNoMoreThanARawPicture() throws {
        let video = VideoFormat(.i420, width: 1920, height: 1080)
        let format = EncodedFormat(codec: .h264, video: video)
        let large = CameraUnits(format, of: video, imageBytes: 1 << 30, makesKeyframes: false)
        #expect(large.mostBytes < 3_200_000 && large.slabBytes < 8_000_000)
        #expect(CameraUnits(format, of: video, imageBytes: 1, makesKeyframes: false).slabBytes == 4 << 20)
    }

    @Test func readsAnyBytesWithinTheirBounds() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5000 {
            let count = Int.random(in: 0...60, using: &random)
            // Exactly as long as it is: what is read beyond is found by the address sanitizer.
            let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
            defer { bytes.deallocate() }
            for index in 0..<count {
                bytes[index] = [0, 0, 0, 1, 1, 0x65, 0x67, 0x68, 0x41].randomElement(using: &random)!
            }
            var stream = UnitStream()
            _ = stream.look(at: UnsafeRawBufferPointer(bytes))
            _ = stream.look(at: UnsafeRawBufferPointer(bytes))
            #expect(stream.sets.count <= 2 * count + 8 && !stream.setsHaveChanged)
        }
    }

    // MARK: A peer

    /// What an encoder made, lost in parts as a camera loses them, decodes without an error.
    @Test(.needsFFmpeg) func ffmpegDecodesWhatIsPassedOn() throws {
        let folder = try ScratchFolder()
        try Tool.run(
            Tool.ffmpeg!,
            [
                "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x32:rate=25:duration=8", "-pix_fmt",
                "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "20", "-x264-params",
                "slices=1:sliced-threads=0:repeat-headers=1", "-f", "h264", folder.file("clip.h264"),
            ])
        let whole = Self.accessUnits(Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("clip.h264")))))
        #expect(whole.count == 200)
        camera.compressedAt = { whole[Int($0) % whole.count] }
        camera.spoil = { $0.sizeimage = max($0.sizeimage, 1 << 17) }
        let driver = try driver()
        // The clip again from its begin, each 30 pictures a gap of three.
        camera.sequence = 0
        var stream: [UInt8] = []
        var count = 0
        while count < 100 {
            if count % 30 == 29 { camera.gap = 3 }
            for unit in try units(driver, 1) { stream += unit.bytes }
            count += 1
        }
        try Data(stream).write(to: URL(fileURLWithPath: folder.file("passed.h264")))
        // Whatever is not decodable is an error.
        try Tool.run(
            Tool.ffmpeg!,
            [
                "-nostdin", "-v", "error", "-xerror", "-err_detect", "explode", "-i", folder.file("passed.h264"), "-f",
                "rawvideo", "-y", folder.file("pictures"),
            ])
        let bytes = try FileManager.default.attributesOfItem(atPath: folder.file("pictures"))[.size] as? Int
        #expect(bytes == 100 * 64 * 32 * 3 / 2)
    }

    /// Of pictures with one slice each.
    private static func accessUnits(_ bytes: [UInt8]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var unit: [UInt8] = []
        var hasSlice = false
        var starts: [Int] = []
        for index in 0..<max(0, bytes.count - 3)
        where bytes[index] == 0 && bytes[index + 1] == 0 && bytes[index + 2] == 1 {
            starts.append(index)
        }
        for (place, start) in starts.enumerated() {
            let end = place + 1 < starts.count ? starts[place + 1] : bytes.count
            if hasSlice {
                units.append(unit)
                (unit, hasSlice) = ([], false)
            }
            unit += bytes[start..<end]
            hasSlice = (1...5).contains(bytes[start + 3] & 31)
        }
        return units + (unit.isEmpty ? [] : [unit])
    }
}
