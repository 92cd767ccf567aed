// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import Glibc
import Stills
import Testing

@testable import ImageSink
@testable import Recordings

@Suite final class ImageSinkTests {
    let folder = FileManager.default.temporaryDirectory.appending(path: "images-\(UUID().uuidString)").path
    let clock = ManualClock(at: 1_000_000_000_000_000_000)
    static let format = VideoFormat(.rgb24, width: 16, height: 12, frameRate: Rational(25))

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func driver(
        _ options: String, format: VideoFormat = format, isLive: Bool = false, chainName: String = "yard"
    ) throws -> StageDriver<ImageSink> {
        try StageDriver(
            ImageSink.self, options: "{ \(options) }", input: .video(format), folder: folder, chainName: chainName,
            isLive: isLive, clock: clock)
    }

    /// A picture of one grey, and the clock moved on by its duration.
    func send(_ driver: StageDriver<ImageSink>, _ value: UInt8, pts: Double? = nil) throws {
        let frame = try driver.makeFrame(pts: pts.map { MediaTime(seconds: $0) }) { TextTests.fill(&$0, value: value) }
        frame.capturedAt = clock.now()
        try driver.send(frame)
        clock.advance(to: clock.now() + 40_000_000)
    }

    /// The names of the folder, in order; without temporary ones there are no others.
    var names: [String] { FolderListing.names(in: folder).sorted() }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    /// The grey of a file, which all its pixels have.
    func grey(_ name: String) throws -> Int {
        let still = try StillPicture(path(name), option: "path")
        #expect(still.width == 16 && still.height == 12)
        let values = Set(still.pixels.enumerated().filter { $0.offset % 4 != 3 }.map { Int($0.element) })
        return try #require(values.count == 1 ? values.first : nil)
    }

    func marks(_ name: String) -> [RecordingMark] { MarkedFile.marks(of: path(name)) }

    func refusal(_ options: String) -> String {
        #expect(throws: (any Error).self) { _ = try driver(options) }.map { "\($0)" } ?? ""
    }

    // MARK: Names and contents

    @Test(arguments: ["jpg", "png", "JPEG"]) func givesEachPictureAFileOfItsOwn(ending: String) throws {
        let driver = try driver(#""path": "shot-{nnn}.\#(ending)""#)
        for value in [10, 90, 170, 250] as [UInt8] { try send(driver, value) }
        try driver.drain()
        #expect(names == (1...4).map { "shot-00\($0).\(ending)" })
        for (index, value) in [10, 90, 170, 250].enumerated() {
            let name = "shot-00\(index + 1).\(ending)"
            #expect(abs(try grey(name) - value) <= (ending == "png" ? 0 : 1))
            let marks = marks(name)
            #expect(marks.count == 1 && marks.first?.recorder == "yard/image-sink" && marks.first?.file == name)
            #expect(marks.first?.number == Int64(index + 1))
        }
        // The next run goes on behind them.
        let next = try self.driver(#""path": "shot-{nnn}.\#(ending)""#)
        try send(next, 1)
        #expect(names.last == "shot-005.\(ending)" && marks(names.last!).first?.number == 5)
    }

    @Test func leavesWhatHasANameAlone() throws {
        try "mine".write(toFile: path("a-0002.png"), atomically: true, encoding: .utf8)
        symlink("/nowhere/x.png", path("a-0003.png"))
        let driver = try driver(#""path": "a-{nnnn}.png", "overwrite": true"#)
        for value in [1, 2, 3] as [UInt8] { try send(driver, value) }
        #expect(names == ["a-0001.png", "a-0002.png", "a-0003.png", "a-0004.png", "a-0005.png"])
        #expect(try String(contentsOfFile: path("a-0002.png"), encoding: .utf8) == "mine")
        // A later run replaces what carries its mark, and nothing else; nor does a run its own.
        let again = try self.driver(#""path": "a-{nnnn}.png", "overwrite": true"#)
        for value in [101, 102, 103, 104] as [UInt8] { try send(again, value) }
        #expect(names.count == 6)
        #expect(try ["a-0001.png", "a-0004.png", "a-0005.png", "a-0006.png"].map(grey) == [101, 102, 103, 104])
        #expect(try String(contentsOfFile: path("a-0002.png"), encoding: .utf8) == "mine")
        // So does no other stage.
        let other = try self.driver(#""path": "a-{nnnn}.png", "overwrite": true"#, chainName: "other")
        try send(other, 200)
        #expect(try grey("a-0007.png") == 200)
    }

    @Test func makesFoldersAndRepeatsTimes() throws {
        let driver = try driver(#""path": "%Y/%m-%d/%H%M%S.jpg""#)
        for value in [1, 2, 3] as [UInt8] { try send(driver, value) }
        let days = try #require(names.first.map { FolderListing.names(in: path($0)) })
        let files = FolderListing.names(in: path("\(names[0])/\(days[0])")).sorted { $0.count < $1.count }
        #expect(files.count == 3 && files[1].hasSuffix("~2.jpg") && files[2].hasSuffix("~3.jpg"))
    }

    // MARK: The newest picture

    @Test func replacesItsOwnFileAgainAndAgain() throws {
        let driver = try driver(#""path": "now.png", "overwrite": true"#)
        for value in 0..<50 { try send(driver, UInt8(value)) }
        #expect(names == ["now.png"])
        #expect(try grey("now.png") == 49)
        try driver.drain()
        // Another run of the chain, not another chain.
        let again = try self.driver(#""path": "now.png", "overwrite": true"#)
        try send(again, 77)
        #expect(try grey("now.png") == 77)
        let text = refusal(#""path": "no/now.png", "overwrite": true"#)
        #expect(text.contains("the folder '\(folder)/no' does not exist"), "\(text)")
        let other = #expect(throws: FrameHostError.self) {
            _ = try self.driver(#""path": "now.png", "overwrite": true"#, chainName: "other")
        }
        #expect(
            other?.description
                == "'\(path("now.png"))' exists and has no mark that this stage (other/image-sink) made it there, so it is not replaced. Move it away, or name another file in 'path'."
        )
    }

    @Test func isNeverHalfAFile() throws {
        let driver = try driver(#""path": "now.png", "overwrite": true"#)
        try send(driver, 0)
        let isOver = Locked(false)
        let seen = Locked((reads: 0, wrong: 0))
        let path = path("now.png")
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            while !isOver.withLock({ $0 }) {
                let data = try? Data(contentsOf: URL(fileURLWithPath: path))
                let isWhole = data?.suffix(8).elementsEqual([0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]) ?? false
                seen.withLock { $0 = ($0.reads + 1, $0.wrong + (isWhole ? 0 : 1)) }
            }
            ended.signal()
        }
        for value in 0..<400 { try send(driver, UInt8(value & 255)) }
        isOver.withLock { $0 = true }
        ended.wait()
        let (reads, wrong) = seen.withLock { $0 }
        #expect(wrong == 0 && reads > 10, "\(wrong) of \(reads)")
        try driver.drain()
    }

    @Test func leavesAWriteProtectedFileAndNothingBesideIt() throws {
        let driver = try driver(#""path": "now.png", "overwrite": true"#)
        try send(driver, 9)
        chmod(path("now.png"), 0o444)
        for _ in 0..<10 { try send(driver, 10) }
        #expect(try grey("now.png") == 9 && names == ["now.png"])
        let failing = driver.takeEvents().filter { $0.name == "images-failing" }
        #expect(failing.count == 1 && failing[0].text.contains("is write-protected. Make it writable"))
        chmod(path("now.png"), 0o644)
        for _ in 0..<10 { try send(driver, 11) }
        #expect(try grey("now.png") == 11 && names == ["now.png"])
    }

    @Test func leavesAFileOfSomebodyElseThatComesMeanwhile() throws {
        let driver = try driver(#""path": "now.jpg", "overwrite": true"#)
        try send(driver, 9)
        unlink(path("now.jpg"))
        try "mine".write(toFile: path("now.jpg"), atomically: true, encoding: .utf8)
        for _ in 0..<20 { try send(driver, 10) }
        #expect(try String(contentsOfFile: path("now.jpg"), encoding: .utf8) == "mine")
        #expect(driver.dropCount(.byStage) == 20)
        let failing = driver.takeEvents().filter { $0.name == "images-failing" }
        #expect(failing.count == 1 && failing[0].text.contains("has no mark that this stage (yard/image-sink) made it"))
        unlink(path("now.jpg"))
        for _ in 0..<10 { try send(driver, 11) }
        #expect(try grey("now.jpg") == 11)
        let resumed = try #require(driver.takeEvents().first { $0.name == "images-resumed" })
        // At most a quarter of a second of pictures is not tried.
        let lost = try #require(resumed.details["lost"]?.asInt)
        #expect((20...26).contains(lost))
        let error = #expect(throws: FrameHostError.self) { try driver.drain() }
        #expect(
            error?.what.hasPrefix("\(lost) of 31 pictures could not be written: '\(path("now.jpg"))' exists") == true)
    }

    // MARK: Faults

    @Test func beginsAgainAsSoonAsItCan() throws {
        mkdir(path("shots"), 0o777)
        let driver = try driver(#""path": "shots/{nnnn}.jpg""#, isLive: true)
        for _ in 0..<5 { try send(driver, 1) }
        try FileManager.default.removeItem(atPath: path("shots"))
        for _ in 0..<50 { try send(driver, 2) }
        mkdir(path("shots"), 0o777)
        for _ in 0..<50 { try send(driver, 3) }
        let files = FolderListing.names(in: path("shots"))
        #expect((44...50).contains(files.count))
        let events = driver.takeEvents().filter { $0.name.hasPrefix("images-") }
        #expect(events.map(\.name) == ["images-failing", "images-resumed"])
        #expect(
            events[0].text.contains("cannot be written: No such file or directory. Create the folder again"),
            "\(events[0].text)")
        let error = #expect(throws: FrameHostError.self) { try driver.drain() }
        #expect(error?.what.contains("of 105 pictures could not be written: ") == true)
        #expect(driver.dropCount(.byStage) == 100 - files.count)
    }

    @Test func ofASlotALaterPictureTakesThePlace() throws {
        mkdir(path("shots"), 0o777)
        let driver = try driver(#""path": "shots/{nnnn}.jpg", "everySeconds": 2"#, isLive: true)
        for index in 0..<75 { try send(driver, 1, pts: Double(index) / 25) }  // 0 and 2 s
        try FileManager.default.removeItem(atPath: path("shots"))
        for index in 75..<125 { try send(driver, 2, pts: Double(index) / 25) }  // 4 s is late,
        mkdir(path("shots"), 0o777)
        for index in 125..<140 { try send(driver, 3, pts: Double(index) / 25) }  // and written at 5 s;
        #expect(FolderListing.names(in: path("shots")).count == 1)
        try FileManager.default.removeItem(atPath: path("shots"))
        for index in 140..<300 { try send(driver, 4, pts: Double(index) / 25) }  // 6 and 8 s are lost, 10 s waits.
        let error = #expect(throws: FrameHostError.self) { try driver.drain() }
        #expect(error?.what.hasPrefix("3 of 6 pictures could not be written: ") == true, "\(error?.what ?? "")")
    }

    @Test func saysAtCheckWhatIsWrong() throws {
        #expect(
            refusal("").contains(#"'path' is missing or empty. Name the file to write: "path": "shots/{nnnn}.jpg"."#))
        #expect(refusal(#""path": "a.bmp""#).contains("'a.bmp' must end in .jpg, .jpeg or .png"))
        #expect(
            refusal(#""path": "a.png""#).contains(
                "'a.png' is one file, but each picture needs a file of its own. Put a number or a time into 'path'"))
        #expect(
            refusal(#""path": "a.png", "overwrite": true, "keepSeconds": 5"#).contains(
                "'keepSeconds' removes older files of a pattern, but 'a.png' is one file"))
        #expect(refusal(#""path": "-""#).contains("'y4m-sink' writes raw video to standard output"))
        #expect(refusal(#""path": "http://x/{n}.jpg""#).contains("is the address http://…"))
        #expect(refusal(#""path": "no/{n}.jpg""#).contains("the folder '\(folder)/no' does not exist"))
        #expect(refusal(#""path": "{n}.jpg", "quality": 0"#).contains("quality"))
        mkdir(path("dir.jpg"), 0o777)
        #expect(refusal(#""path": "dir.jpg", "overwrite": true"#).contains("is a folder"))
        #expect(mkfifo(path("pipe.jpg"), 0o600) == 0)
        #expect(refusal(#""path": "pipe.jpg", "overwrite": true"#).contains("must be a regular file, but is a pipe"))
    }

    // MARK: Retention

    @Test func keepsTheNewestFilesOfItsOwn() throws {
        try "mine".write(toFile: path("s-9000.png"), atomically: true, encoding: .utf8)
        let format = VideoFormat(.rgb24, width: 64, height: 64, frameRate: Rational(1))
        let driver = try driver(
            #""path": "s-{nnnn}.png", "keepMegabytes": 0.02, "keepSeconds": 100000"#, format: format)
        for index in 0..<30 {
            let frame = try driver.makeFrame { TextTests.fill(&$0, seed: UInt64(index)) }
            frame.capturedAt = clock.now()
            try driver.send(frame)
            clock.advance(to: clock.now() + 1_500_000_000)
        }
        // 12 kB of noise each: one fits into 20 kB, and the next is there until the next look.
        #expect(names.contains("s-9000.png") && names.count <= 3)
        #expect(names.contains("s-9030.png"))
        let removed = driver.takeEvents().filter { $0.name == "images-removed" }
        #expect(removed.compactMap { $0.details["files"]?.asInt }.reduce(0, +) == 31 - names.count)
    }

    @Test func removesWhatIsTooOldAndTellsOfStrangers() throws {
        let before = try self.driver(#""path": "s-{nnnn}.jpg""#, chainName: "other")
        for _ in 0..<3 { try send(before, 1) }
        for name in names {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: path(name))
        }
        clock.advance(to: clock.now() + 3_600_000_000_000)
        let driver = try driver(#""path": "s-{nnnn}.jpg", "keepSeconds": 10"#)
        for _ in 0..<40 {
            try send(driver, 5)
            clock.advance(to: clock.now() + 1_000_000_000)
        }
        let left = names.filter { marks($0).first?.recorder == "yard/image-sink" }
        #expect((8...12).contains(left.count), "\(left)")
        #expect(names.filter { marks($0).first?.recorder == "other/image-sink" }.count == 3)
        let strangers = driver.takeEvents().filter { $0.name == "images-not-removed" }
        #expect(strangers.count == 1 && strangers[0].text.contains("3 files have names of this stage's pattern"))
    }

    // MARK: Which pictures

    @Test func takesThePictureOfEachSlot() throws {
        func taken(_ every: Double?, _ times: [Double]) -> [Double] {
            var schedule = PictureSchedule(everySeconds: every)
            return times.filter { time in
                let pts = MediaTime(seconds: time)
                guard schedule.isDue(pts) else { return false }
                let lost = schedule.took(pts)
                #expect(lost == 0)
                return true
            }
        }
        #expect(taken(nil, [0, 0.04, 0.08]) == [0, 0.04, 0.08])
        // 30 a second, in milliseconds as Matroska has them: 0.999 s is the picture of a second.
        let thirty = (0..<100).map { (Double($0) * 1000 / 30).rounded(.down) / 1000 }
        #expect(taken(1, thirty) == [0, 1, 2, 3])
        #expect(taken(0.5, [7.2, 7.3, 7.7, 8.1, 8.2, 8.7]) == [7.2, 7.7, 8.2, 8.7])
        // A gap makes no more pictures, and the grid stays.
        #expect(taken(1, [0, 0.5, 5.5, 5.9, 6, 6.5, 7]) == [0, 5.5, 6, 7])
        // Slower pictures than slots are all taken.
        #expect(taken(0.1, [0, 1, 2, 3]) == [0, 1, 2, 3])
        // Times that step back begin a new grid.
        #expect(taken(10, [100, 105, 110, 3, 5, 13, 20]) == [100, 110, 3, 13])
    }

    @Test func takesKeyframesOnly() throws {
        let driver = try driver(#""path": "{n}.png", "keyframesOnly": true"#)
        func send(_ count: Int, keyframes: (Int) -> Bool) throws {
            for index in 0..<count {
                let frame = try driver.makeFrame { TextTests.fill(&$0, value: UInt8(index & 255)) }
                frame.isKeyframe = keyframes(index)
                try driver.send(frame)
            }
        }
        try send(40) { $0 % 12 == 3 }
        #expect(names == ["1.png", "2.png", "3.png", "4.png"])
        #expect(try names.map(grey) == [3, 15, 27, 39])
        try driver.set(#"{ "everySeconds": 1 }"#)
        try send(50) { $0 % 12 == 3 }
        // At 1.72 s, and the first keyframe of the slot that begins a second later.
        #expect(try names.dropFirst(4).map(grey) == [3, 39])
        try driver.drain()
        #expect(!driver.takeEvents().contains { $0.name == "no-keyframes" })
        let none = try self.driver(#""path": "none-{n}.png", "keyframesOnly": true"#)
        for _ in 0..<700 { try none.send(none.makeFrame()) }
        try none.drain()
        let said = none.takeEvents().filter { $0.name == "no-keyframes" }
        #expect(said.count == 1 && said[0].text.contains("None of the first 600 pictures was a keyframe"))
    }

    @Test func takesAnotherPaceAndQualityWhileItRuns() throws {
        let format = VideoFormat(.i420, width: 64, height: 64, frameRate: Rational(25))
        let driver = try driver(#""path": "{nnn}.jpg", "everySeconds": 1"#, format: format)
        func send(_ count: Int) throws {
            for _ in 0..<count { try driver.send(driver.makeFrame { TextTests.fill(&$0) }) }
        }
        try send(50)
        #expect(names.count == 2)
        try driver.set(#"{ "everySeconds": 0.2, "quality": 10 }"#)
        try send(25)
        #expect(names.count == 7)
        func size(_ name: String) -> UInt64 {
            (try? FileManager.default.attributesOfItem(atPath: path(name))[.size] as? UInt64) ?? 0
        }
        #expect(size("007.jpg") * 3 < size("001.jpg"))
    }

    /// Marks keep what decoders and other readers look for, and only whole ones are read.
    @Test func marksPicturesWhereNobodyLooks() throws {
        let driver = try driver(#""path": "{n}.jpg""#)
        try send(driver, 50)
        let png = try self.driver(#""path": "{n}.png""#)
        try send(png, 60)
        for name in ["1.jpg", "1.png"] {
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path(name))))
            let mark = try #require(marks(name).first)
            // Renamed, it is nobody's; cut within the mark, it has none.
            #expect(!mark.names("2.jpg", in: mark.folder, recorder: "yard/image-sink"))
            try Data(bytes.prefix(200)).write(to: URL(fileURLWithPath: path("cut")))
            #expect(marks("cut").isEmpty)
            #expect(MarkedPicture.file(Array("GIF89a".utf8), with: mark) == nil)
            // A second mark before the first would be another stage's: the file is marked once.
            bytes.removeAll()
            #expect(MarkedPicture.file(bytes, with: mark) == nil)
        }
        let text = String(
            decoding: try Data(contentsOf: URL(fileURLWithPath: path("1.jpg"))).prefix(200), as: UTF8.self)
        #expect(text.contains("JFIF") && text.contains("Exif"))
    }
}
