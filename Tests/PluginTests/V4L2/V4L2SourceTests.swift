// SPDX-License-Identifier: Apache-2.0

import CTurboJPEG
import CV4L2
import FrameCore
import Glibc
import Testing

@testable import V4L2Source

@Suite struct V4L2SourceTests {
    private let camera = ScriptedCamera()
    private let clock = ManualClock(at: 50_000_000_000)

    private func driver(_ options: String = "{}") throws -> StageDriver<V4L2Source> {
        camera.clock = clock
        return try DeviceCallsInUse.$current.withValue(camera) {
            try StageDriver(V4L2Source.self, options: options, clock: clock)
        }
    }

    /// What a chain file with these options is refused with.
    private func fault(_ options: String = "{}") -> String {
        do {
            _ = try driver(options)
            return ""
        } catch {
            return (error as? FrameHostErrors).map { $0.errors.map(\.description).joined(separator: "\n") }
                ?? FrameHostError.wrap(error).description
        }
    }

    private func notes(_ driver: StageDriver<V4L2Source>) -> [String] {
        driver.takeEvents().filter { $0.name == "note" }.map { String($0.text.dropLast()) }
    }

    private func figures(_ driver: StageDriver<V4L2Source>) -> JSONNode { driver.stage.figures.json }

    /// Calls the source until it has given a frame.
    private func next(_ driver: StageDriver<V4L2Source>, calls: Int = 5000) throws -> Frame {
        for _ in 0..<calls {
            if let frame = driver.takeFrame() { return frame }
            guard try driver.produce() == .more else { break }
        }
        throw FrameHostError(.broken, what: "no frame came in \(calls) calls")
    }

    private static func luma(_ frame: borrowing Frame) -> UInt8 { frame.withPlane(0) { $0.row(0)[0] } }

    // MARK: Pictures

    @Test(arguments: ["YUYV", "NV12", "YU12"]) func givesTheDriversPicturesWithoutCopyingThem(code: String) throws {
        // Rows of every plane lie as the chain has them from a width of 128 on.
        camera.offers = [.init(code: code, sizes: [(128, 32)], intervals: [(1, 25)])]
        let driver = try driver(#"{ "size": "128x32", "rate": 25 }"#)
        for number in 0..<20 {
            let frame = try next(driver)
            #expect(frame.isUnique == true)
            #expect(Self.luma(frame) == UInt8(number))
            #expect(frame.pts.nanoseconds == 50_000_000_000 + Int64(number + 1) * 40_000_000)
            #expect(frame.capturedAt == frame.pts.nanoseconds)
            #expect(frame.duration.nanoseconds == 40_000_000)
            #expect(frame.isDiscontinuity == false)
        }
        #expect(figures(driver)["lent"]?.asInt == 20)
        #expect(figures(driver)["copied"]?.asInt == 0)
        #expect(camera.mapped == 0)
        try driver.stop()
    }

    @Test func copiesWhereTheDriverDoesNotTakeTheChainsBuffers() throws {
        camera.takesOurs = false
        let driver = try driver()
        for number in 0..<9 { #expect(Self.luma(try next(driver)) == UInt8(number)) }
        #expect(figures(driver)["copied"]?.asInt == 9)
        #expect(driver.stage.demand.floor == 0)
        try driver.stop()
        #expect(camera.mapped == 4 && camera.unmapped == 4)
    }

    @Test func copiesWhereTheDriversRowsLieOtherwise() throws {
        camera.rowPadding = 32
        let driver = try driver()
        #expect(Self.luma(try next(driver)) == 0)
        #expect(figures(driver)["copied"]?.asInt == 1)
        #expect(
            notes(driver).contains {
                $0 == "1 copy per frame: in plane 0 the driver's stride is 160 bytes, the chain's 128"
            })
    }

    @Test func copiesWhereTheDriverRefusesItsFirstBuffer() throws {
        camera.faults[fh_vidioc_qbuf] = [EINVAL]
        let driver = try driver()
        #expect(Self.luma(try next(driver)) == 0)
        #expect(figures(driver)["copied"]?.asInt == 1)
        #expect(driver.takeEvents().contains { $0.name == "pictures-copied" })
    }

    @Test func losesNoBufferWhenAnEnqueueIsRefusedOnce() throws {
        let driver = try driver()
        _ = try next(driver)
        camera.faults[fh_vidioc_qbuf] = [EINVAL]
        for _ in 0..<20 { _ = try next(driver) }
        #expect(camera.queued.count >= 3)
        #expect(figures(driver)["losses"]?.asInt == 0)
    }

    @Test func countsWhatIsMissingInTheDriversNumbersAndMarksTheGap() throws {
        let driver = try driver()
        _ = try next(driver)
        camera.gap = 3
        #expect(try next(driver).isDiscontinuity == true)
        #expect(try next(driver).isDiscontinuity == false)
        #expect(figures(driver)["missed"]?.asInt == 3)
        // Counted anew: no gap of four thousand million.
        camera.sequence = 0
        _ = try next(driver)
        #expect(figures(driver)["missed"]?.asInt == 3)
    }

    /// As v4l2loopback counts.
    @Test func missesNoMoreThanThereWasTimeFor() throws {
        let driver = try driver(#"{ "rate": 25 }"#)
        _ = try next(driver)
        for _ in 0..<10 {
            camera.sequence += 2
            #expect(try next(driver).isDiscontinuity == false)
        }
        #expect(figures(driver)["missed"]?.asInt == 0)
        camera.gap = 1
        camera.sequence += 5
        #expect(try next(driver).isDiscontinuity == true)
        #expect(figures(driver)["missed"]?.asInt == 1)
    }

    @Test func leavesOutWhatTheDriverMarksAsDamagedOrShort() throws {
        let driver = try driver()
        _ = try next(driver)
        var count = 0
        camera.spoilBuffer = { buffer in
            count += 1
            if count == 1 { buffer.flags |= UInt32(V4L2_BUF_FLAG_ERROR) }
            if count == 2 { buffer.bytesused = 7 }
        }
        #expect(Self.luma(try next(driver)) == 3)
        #expect(figures(driver)["damaged"]?.asInt == 2)
        #expect(driver.takeEvents().count { $0.name == "picture-damaged" } == 1)
    }

    @Test(arguments: [Int64(-1), 0, 1 << 40, .max]) func takesItsOwnTimeWhereTheDriversCannotBeMeant(seconds: Int64)
        throws
    {
        let driver = try driver()
        camera.spoilBuffer = { $0.timestamp.tv_sec = Int(seconds) }
        let first = try next(driver).pts
        let second = try next(driver).pts
        #expect(first.nanoseconds == clock.now() - 40_000_000)
        #expect(second > first)
        #expect(figures(driver)["timesReplaced"]?.asInt == 2)
    }

    @Test func givesRisingTimesWhereTheDriversStandStill() throws {
        let driver = try driver()
        _ = try next(driver)
        let stuck = clock.now()
        camera.spoilBuffer = {
            $0.timestamp = timeval(tv_sec: Int(stuck / 1_000_000_000), tv_usec: Int(stuck % 1_000_000_000 / 1000))
        }
        #expect(try next(driver).pts.nanoseconds == stuck + 1_000_000)
        #expect(try next(driver).pts.nanoseconds == stuck + 2_000_000)
    }

    // MARK: JPEG

    private static func jpeg(_ sampling: TJSAMP, width: Int32 = 64, height: Int32 = 32, gray: UInt8) -> [UInt8] {
        let handle = tjInitCompress()
        defer { tjDestroy(handle) }
        let pixels = [UInt8](repeating: gray, count: Int(width * height) * 3)
        var bytes: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        tjCompress2(
            handle, pixels, width, 0, height, Int32(TJPF_RGB.rawValue), &bytes, &count, Int32(sampling.rawValue), 95, 0)
        defer { tjFree(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    @Test(arguments: [TJSAMP_420, TJSAMP_422, TJSAMP_GRAY]) func decodesJPEG(sampling: TJSAMP) throws {
        camera.offers = [.init(code: "MJPG", sizes: [(64, 32)], intervals: [(1, 25)])]
        camera.compressed = Self.jpeg(sampling, gray: 77)
        let driver = try driver()
        #expect(driver.outputFormat?.video?.pixelFormat == .i420)
        #expect(driver.outputFormat?.video?.color.range == .full)
        let frame = try next(driver)
        frame.withPlane(0) { #expect($0.row(31).allSatisfy { $0 == 77 }) }
        frame.withPlane(1) { #expect($0.row(15).allSatisfy { $0 == 128 }) }
        frame.withPlane(2) { #expect($0.row(0).allSatisfy { $0 == 128 }) }
        #expect(figures(driver)["decoded"]?.asInt == 1)
    }

    /// Every buffer was in hand here when the driver refused them: nothing would ever come to be given back.
    @Test func givesBackWhatTheDriverRefusedWhenItHasNone() throws {
        camera.takesOurs = false
        let driver = try driver()
        _ = try next(driver)
        camera.faults[fh_vidioc_qbuf] = Array(repeating: EAGAIN, count: 12)
        for _ in 0..<8 { _ = try next(driver) }
        #expect(figures(driver)["losses"]?.asInt == 0)
    }

    /// Many webcams put some before a marker; the library warns, and the picture is whole.
    @Test func takesJPEGWithBytesTooMany() throws {
        camera.offers = [.init(code: "MJPG", sizes: [(64, 32)], intervals: [(1, 25)])]
        let whole = Self.jpeg(TJSAMP_422, gray: 77)
        camera.compressed = whole.dropLast(2) + [0x12, 0x34] + whole.suffix(2)
        let driver = try driver()
        let frame = try next(driver)
        frame.withPlane(0) { #expect($0.row(31).allSatisfy { $0 == 77 }) }
        #expect(figures(driver)["damaged"]?.asInt == 0 && figures(driver)["decoded"]?.asInt == 1)
    }

    @Test func leavesOutDamagedJPEGAndRefusesOtherKinds() throws {
        camera.offers = [.init(code: "MJPG", sizes: [(64, 32)], intervals: [(1, 25)])]
        let whole = Self.jpeg(TJSAMP_422, gray: 77)
        let bad: [[UInt8]] = [
            [1, 2, 3], Array(whole.prefix(whole.count / 2)), [UInt8](repeating: 0, count: 300),
            Self.jpeg(TJSAMP_422, width: 32, height: 32, gray: 1),
        ]
        camera.compressed = bad[0]
        let driver = try driver()
        for bytes in bad {
            camera.compressed = bytes
            for _ in 0..<3 { #expect(try driver.produce() == .more) }
        }
        var isEmpty = true
        if let _ = driver.takeFrame() { isEmpty = false }
        #expect(isEmpty)
        #expect(figures(driver)["damaged"]?.asInt == 12)
        camera.compressed = whole
        _ = try next(driver)
        // A damaged header may claim any kind; a camera that gives another one is refused.
        let other = Self.jpeg(TJSAMP_444, gray: 1)
        for count in [1, 24] {
            camera.compressed = other
            for _ in 0..<count { #expect(try driver.produce() == .more) }
            camera.compressed = whole
            _ = try next(driver)
        }
        #expect(figures(driver)["damaged"]?.asInt == 37)
        camera.compressed = other
        let fault = #expect(throws: FrameHostError.self) { for _ in 0..<25 { _ = try driver.produce() } }
        #expect(
            fault?.what == "the camera gave 25 JPEG pictures in a row, and their chroma is neither 4:2:0 nor 4:2:2")
    }

    // MARK: Choice

    @Test func saysWhatTheCameraGivesInsteadOfWhatIsAsked() throws {
        let driver = try driver(#"{ "size": "1280x720", "rate": 30 }"#)
        let notes = notes(driver)
        #expect(
            notes.first
                == "Scripted (/dev/video0): requested 1280x720 at 30 fps, but the camera gives 64x32 at 25 fps (yuyv). `framehost devices` lists its modes"
        )
        #expect(notes.last == "no copy: the driver writes into the chain's buffers")
        #expect(camera.interval == (1, 25))
    }

    @Test func setsNothingBeforeItStarts() throws {
        _ = try driver()
        let start = try #require(camera.seen.firstIndex(of: fh_vidioc_s_fmt))
        #expect(!camera.seen[..<start].contains(fh_vidioc_s_parm))
        #expect(!camera.seen[..<start].contains(fh_vidioc_streamon))
    }

    @Test func saysWhenTheDriverSetsAnotherRateThanItLists() throws {
        camera.fixedInterval = (1, 5)
        let driver = try driver()
        #expect(
            driver.takeEvents().first { $0.name == "rate-differs" }?.text
                == "The camera lists 25 fps, but its driver has set 5 fps. The times of its pictures are right, but the chain is planned for 25 fps. If `framehost devices` lists 5 fps too, set 'rate' to that in the chain file."
        )
    }

    @Test func refusesADriverThatAnswersWithAnotherFormat() throws {
        camera.spoil = { $0.pixelformat = 0x4745_504A }
        #expect(
            fault()
                == "the camera's driver gives the format JPEG, but YUYV was requested. Choose another 'size' or 'format'. `framehost devices` lists them."
        )
    }

    @Test func refusesNumbersThatNoPictureHas() throws {
        let spoils: [(inout v4l2_pix_format) -> Void] = [
            { $0.width = 0 }, { $0.height = .max }, { $0.bytesperline = 1 }, { $0.bytesperline = .max },
            { $0.sizeimage = 9 }, { $0.sizeimage = .max }, { $0.field = V4L2_FIELD_ALTERNATE.rawValue },
            { $0.width += 2 },
        ]
        for spoil in spoils {
            camera.spoil = spoil
            #expect(fault().hasPrefix("the camera's driver gives "))
        }
        camera.spoil = { _ in }
        camera.offers = [.init(code: "YUYV", sizes: [(0, 0), (.max, 1)], intervals: [(0, 0), (.max, 1), (1, .max)])]
        #expect(fault().hasPrefix("the camera's driver gives no usable size for YUYV. "))
    }

    @Test func namesWhatThereIsWhereTheAskedIsNot() {
        #expect(
            fault(#"{ "format": "nv12" }"#)
                == "format: '/dev/video0' does not support nv12; it has YUYV. Leave 'format' out to use one that the camera has."
        )
        #expect(
            fault(#"{ "device": "/dev/video7" }"#)
                == "device: there is no camera '/dev/video7'. Plug it in, or use 'Scripted' (/dev/video0); `framehost devices` shows details. Set \"ifMissing\": \"wait\" to start the chain without a camera."
        )
        camera.nodes = []
        #expect(
            fault()
                == "there is no camera. Plug one in, or load its driver. Set \"ifMissing\": \"wait\" to start the chain without a camera."
        )
    }

    @Test func saysWhichGroupMayOpenTheCamera() {
        camera.openFaults = [EACCES, EACCES]
        #expect(
            fault(#"{ "device": "/dev/video0" }"#)
                == "this user may not open '/dev/video0'. Join the group 'video', which may open it: `sudo usermod -aG video $USER`. Then log in again.\n  Permission denied"
                .replacing("Permission denied", with: "open: Permission denied (EACCES)"))
    }

    @Test func saysThatAPathIsNoCamera() {
        camera.faults[fh_vidioc_querycap] = [ENOTTY, ENOTTY]
        #expect(
            fault(#"{ "device": "/dev/video0" }"#).hasPrefix(
                "device: '/dev/video0' is not a camera. Use a camera that `framehost devices` lists."))
    }

    @Test func saysWhoHasTheCameraInUse() {
        camera.faults[fh_vidioc_s_fmt] = [EBUSY]
        camera.links["/proc/4711/fd/9"] = "/dev/video0"
        camera.links["/proc/12/fd/1"] = "/dev/null"
        camera.files["/proc/4711/comm"] = "obs"
        #expect(
            fault()
                == "'/dev/video0' is in use by obs (pid 4711). End that program. Only one program can use a camera.\n  VIDIOC_S_FMT: Device or resource busy (EBUSY)"
        )
    }

    @Test(arguments: [
        fh_vidioc_querycap, fh_vidioc_try_fmt, fh_vidioc_s_fmt,
    ]) func saysWhichCallFailed(request: UInt) {
        camera.faults[request] = [EINTR, EINVAL, EINVAL]
        #expect(fault(#"{ "device": "/dev/video0" }"#).contains("Invalid argument (EINVAL)"))
    }

    @Test(arguments: [fh_vidioc_enum_framesizes, fh_vidioc_enum_frameintervals, fh_vidioc_s_parm, fh_vidioc_queryctrl])
    func doesWithoutCallsThatADriverLacks(request: UInt) throws {
        camera.faults[request] = Array(repeating: ENOTTY, count: 100)
        let driver = try driver(#"{ "size": "64x32" }"#)
        #expect(Self.luma(try next(driver)) == 0)
    }

    // MARK: Which camera

    @Test(arguments: [
        "/dev/v4l/by-id/usb-A-index0", "usb-A-index0", "scripted", "Scrip", "SN-1",
    ]) func findsACameraByWhatNamesIt(device: String) throws {
        camera.links["/dev/v4l/by-id/usb-A-index0"] = "/dev/video0"
        camera.files["/sys/class/video4linux/video0/device/../serial"] = "SN-1"
        #expect(fault(#"{ "device": "\#(device)" }"#) == "")
    }

    @Test func asksForMoreWhereANameMeansTwoCameras() {
        camera.nodes = ["/dev/video0", "/dev/video2"]
        #expect(
            fault(#"{ "device": "script" }"#)
                == "device: 'script' names 2 cameras: /dev/video0, /dev/video2. Use one of their stable ids, which `framehost devices` lists, or a path."
        )
    }

    @Test func listsCamerasWithWhatTheyCanDo() throws {
        camera.controls = [.init(id: 10, title: "Brightness")]
        camera.offers.append(.init(code: "GRBG", sizes: [(8, 8)], intervals: []))
        camera.links["/dev/v4l/by-id/usb-A-index0"] = "/dev/video0"
        let devices = try DeviceCallsInUse.$current.withValue(camera) { try V4L2Source.devices() }
        let device = try #require(devices.first)
        #expect(devices.count == 1)
        #expect(device.stableIDs == ["usb-A-index0"])
        #expect(device.formats.map(\.name) == ["yuyv", ""])
        #expect(device.formats[0].sizes == [.init(width: 64, height: 32, rates: [Rational(25)])])
        #expect(device.controls.map(\.name) == ["brightness"])
        #expect(camera.opened == camera.closed)
    }

    @Test func asksForLessWhereThereIsOneProcessorAlone() throws {
        camera.processors = 1
        camera.offers = [
            .init(code: "YUYV", sizes: [(640, 480), (1280, 720)], intervals: [(1, 30), (1, 15)])
        ]
        let driver = try driver()
        let format = try #require(driver.outputFormat?.video)
        #expect(format.width == 640 && format.height == 480 && format.frameRate == Rational(15))
        #expect(
            notes(driver).first
                == "this machine has only one processor, so the stage requests 640x480 instead of 1280x720 and 15 frames per second instead of 30"
        )
        let asked = try self.driver(#"{ "size": "1280x720", "rate": 30 }"#)
        #expect(asked.outputFormat?.video?.width == 1280)
        #expect(!notes(asked).contains { $0.contains("one processor") })
    }

    // MARK: Previews

    @Test(arguments: [
        ("{}", false), (#"{ "facing": "front" }"#, true), (#"{ "facing": "back" }"#, false),
        (#"{ "facing": "front", "mirror": false }"#, false), (#"{ "mirror": true }"#, true),
    ]) func marksWhatPreviewsMirror(options: String, isMirrored: Bool) throws {
        let driver = try driver(options)
        let frame = try next(driver)
        #expect(frame.isMirroredInPreviews == isMirrored)
        // The picture itself is as the camera gave it.
        #expect(frame.orientation == .up)
        camera.isGone = ENODEV
        let held = try next(driver)
        let (isHeld, staysMirrored) = (held.isSubstitute, held.isMirroredInPreviews)
        #expect(isHeld && staysMirrored == isMirrored)
        try driver.set(#"{ "mirror": \#(!isMirrored) }"#)
        #expect(try next(driver).isMirroredInPreviews == !isMirrored)
    }

    // MARK: Controls

    private func addControls() {
        camera.controls = [
            .init(id: 10, title: "Brightness"),
            .init(id: 11, title: "Gain, Automatic", type: V4L2_CTRL_TYPE_BOOLEAN, most: 1),
            .init(
                id: 12, title: "Test Pattern", type: V4L2_CTRL_TYPE_MENU, most: 2, words: ["Bars", "", "Solid Red"]),
            .init(id: 13, title: "Zoom", least: 100, most: 200, step: 10),
            .init(id: 14, title: "Temperature", flags: V4L2_CTRL_FLAG_READ_ONLY),
        ]
    }

    @Test func setsControlsByNameAndWhileRunning() throws {
        addControls()
        let driver = try driver(
            #"{ "controls": { "brightness": 200, "gain_automatic": false, "test_pattern": "solid red" } }"#)
        #expect(camera.controls.prefix(3).map(\.value) == [200, 0, 2])
        _ = try next(driver)
        let before = camera.seen.count { $0 == fh_vidioc_s_ctrl }
        try driver.set(#"{ "controls": { "brightness": 200, "zoom": 117 } }"#)
        #expect(camera.controls[3].value == 117 - 117 % 10)
        #expect(camera.seen.count { $0 == fh_vidioc_s_ctrl } == before + 1)
        #expect(
            driver.takeEvents().last { $0.name == "control-changed" }?.text
                == "The control 'zoom' was set to 117, but the camera changed it to 110.")
    }

    @Test func saysWhatAControlTakes() {
        addControls()
        #expect(
            fault(
                #"{ "controls": { "brightness": 300, "zoom": 1, "brightnes": 1, "test_pattern": 1, "gain_automatic": 7, "temperature": 1 } }"#
            )
                == """
                controls.brightness: 300 must be from 0 to 255. Use 255 or less.
                controls.zoom: 1 must be from 100 to 200 in steps of 10. Use 100 or more.
                controls.brightnes: the camera has no such control. Did you mean 'brightness'?
                controls.test_pattern: must be one of its values, but is 1. Use 'Bars' (0), 'Solid Red' (2).
                controls.gain_automatic: must be true or false, but is 7. Write true or false.
                controls.temperature: can only be read. Leave it out.
                """)
    }

    // MARK: Away

    @Test(arguments: [ENODEV, EIO]) func showsTheLastPictureUntilTheCameraIsBack(code: Int32) throws {
        let driver = try driver()
        for _ in 0..<30 { _ = try next(driver) }
        _ = driver.takeEvents()
        camera.isGone = code
        let lost = try next(driver)
        #expect(lost.isDiscontinuity == true)
        // Copied a second apart: that of 1.0 s.
        #expect(Self.luma(lost) == 25)
        var times = [lost.pts]
        for _ in 0..<50 { times.append(try next(driver).pts) }
        #expect(zip(times, times.dropFirst()).allSatisfy { ($1 - $0).nanoseconds == 40_000_000 })
        #expect(camera.opened == camera.closed)
        camera.isGone = nil
        camera.sequence = 99
        var back = try next(driver)
        while Self.luma(back) != 99 { back = try next(driver) }
        #expect(back.isDiscontinuity == true)
        // Two items of a stream never have one time stamp, whose ticks may be of a millisecond.
        #expect((back.pts - times.last!).nanoseconds >= 1_000_000)
        let events = driver.takeEvents()
        #expect(events.map(\.name) == ["camera-lost", "camera-back"])
        #expect(figures(driver)["losses"]?.asInt == 1)
        try driver.stop()
        #expect(camera.opened == camera.closed)
    }

    @Test func findsTheCameraAgainUnderAnotherNumber() throws {
        camera.links["/dev/v4l/by-id/usb-A-index0"] = "/dev/video0"
        let driver = try driver()
        _ = try next(driver)
        camera.isGone = ENODEV
        _ = try next(driver)
        camera.nodes = ["/dev/video3"]
        camera.links["/dev/v4l/by-id/usb-A-index0"] = "/dev/video3"
        camera.isGone = nil
        for _ in 0..<60 { _ = try next(driver) }
        #expect(driver.takeEvents().last?.text.hasPrefix("The camera is back as /dev/video3, after ") == true)
    }

    @Test func countsACameraAsLostWhoseDriverTakesNoBuffers() throws {
        let driver = try driver()
        _ = try next(driver)
        camera.faults[fh_vidioc_qbuf] = Array(repeating: EINVAL, count: 70)
        while figures(driver)["losses"]?.asInt == 0 { _ = try driver.produce() }
        let lost = driver.takeEvents().first { $0.name == "camera-lost" }?.text
        #expect(lost?.hasPrefix("The camera is lost: VIDIOC_QBUF: Input/output error (EIO).") == true)
        for _ in 0..<40 { _ = try next(driver) }
        #expect(figures(driver)["state"]?.asString == "streaming")
    }

    @Test func saysOnceWhyACameraThatIsBackCannotBeUsed() throws {
        let driver = try driver()
        _ = try next(driver)
        camera.isGone = ENODEV
        _ = try next(driver)
        camera.isGone = nil
        camera.faults[fh_vidioc_s_fmt] = [EBUSY, EBUSY, EBUSY]
        for _ in 0..<60 { _ = try next(driver) }
        #expect(
            driver.takeEvents().map(\.name).filter { $0.hasPrefix("camera-") } == [
                "camera-lost", "camera-refused", "camera-back",
            ])
    }

    @Test func countsACameraAsLostThatGivesNothing() throws {
        let driver = try driver()
        _ = try next(driver)
        camera.isStalled = true
        _ = try next(driver)
        #expect(
            driver.takeEvents().first { $0.name == "camera-lost" }?.text.hasPrefix(
                "The camera is lost: no picture for 200")
                == true)
    }

    @Test func failsWhenItIsToStopAtALoss() throws {
        let driver = try driver(#"{ "whileLost": "stop" }"#)
        _ = try next(driver)
        camera.isGone = ENODEV
        let fault = #expect(throws: FrameHostError.self) { _ = try driver.produce() }
        #expect(fault?.what == "the camera is lost: VIDIOC_DQBUF: No such device (ENODEV)")
    }

    @Test func startsWithoutACameraAndShowsASlate() throws {
        camera.nodes = []
        let driver = try driver(##"{ "ifMissing": "wait", "size": "64x32", "rate": 25, "slateColor": "#ffffff" }"##)
        #expect(driver.outputFormat?.video?.pixelFormat == .i420)
        #expect(Self.luma(try next(driver)) == 235)
        camera.nodes = ["/dev/video0"]
        camera.sequence = 7
        var frame = try next(driver)
        while Self.luma(frame) == 235 { frame = try next(driver) }
        #expect(Self.luma(frame) == 7)
        #expect(figures(driver)["copied"]?.asInt == 1)
    }

    /// JPEG has full range, but a chain without its camera is planned for video range.
    @Test func convertsAJPEGCameraThatComesLaterToThePlannedRange() throws {
        camera.nodes = []
        camera.offers = [.init(code: "MJPG", sizes: [(64, 32)], intervals: [(1, 25)])]
        camera.compressed = Self.jpeg(TJSAMP_420, gray: 255)
        let driver = try driver(##"{ "ifMissing": "wait", "size": "64x32", "rate": 25, "slateColor": "#000000" }"##)
        #expect(driver.outputFormat?.video?.color.range == .video)
        #expect(Self.luma(try next(driver)) == 16)
        camera.nodes = ["/dev/video0"]
        var frame = try next(driver)
        while Self.luma(frame) == 16 { frame = try next(driver) }
        #expect(Self.luma(frame) == 235)
    }

    /// Between the choice of its mode and the start.
    @Test func startsWithoutACameraThatGoesMeanwhile() throws {
        camera.faults[fh_vidioc_s_fmt] = [ENODEV]
        let driver = try driver(##"{ "ifMissing": "wait", "slateColor": "#ffffff" }"##)
        #expect(Self.luma(try next(driver)) == 235)
        #expect(
            driver.takeEvents().map(\.text).last
                == "The chain starts without its camera: '/dev/video0' has disappeared. It is opened when it is back.")
        var frame = try next(driver)
        while Self.luma(frame) == 235 { frame = try next(driver) }
        #expect(driver.takeEvents().map(\.name) == ["camera-back"])
        try driver.stop()
        #expect(camera.opened == camera.closed)

        camera.faults[fh_vidioc_s_fmt] = [ENODEV]
        #expect(fault().hasPrefix("'/dev/video0' has disappeared. Check its cable and `dmesg`."))
    }

    @Test func losesAndFindsTheCameraAHundredTimesWithoutKeepingAnything() throws {
        let driver = try driver()
        for _ in 0..<100 {
            for _ in 0..<5 { _ = try next(driver) }
            camera.isGone = ENODEV
            for _ in 0..<8 { _ = try next(driver) }
            camera.isGone = nil
            for _ in 0..<30 { _ = try next(driver) }
        }
        try driver.stop()
        #expect(camera.opened == camera.closed)
        #expect(driver.stage.figures.losses.load(ordering: .relaxed) == 100)
    }
}
