// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore
import Glibc
import Testing

@testable import V4L2Sink

/// Output devices that a test scripts: what they answer, and which call fails with which errno.
private final class ScriptedOutput: OutputCalls, @unchecked Sendable {
    struct Node {
        var name = "framehost"
        var capabilities = UInt32(V4L2_CAP_VIDEO_OUTPUT)
        var driver = "vivid"
    }

    var nodes: [String: Node] = [:]
    var openFault: Int32 = 0
    /// Devices that alone may not be opened.
    var refused: Set<String> = []
    /// Errnos of the next calls of a request, first to last.
    var faults: [UInt: [Int32]] = [:]
    var bufferCount: UInt32 = 2
    /// Bytes that each buffer has behind a picture.
    var bufferRest: UInt32 = 4096
    var spoilBuffer: (inout v4l2_buffer) -> Void = { _ in }
    var spoil: (inout v4l2_pix_format) -> Void = { _ in }
    private(set) var format = v4l2_pix_format()
    private(set) var setCount = 0
    private(set) var interval = v4l2_fract()
    private(set) var pictures: [[UInt8]] = []
    private(set) var isOpen = 0
    private(set) var isStreaming = false
    private(set) var mapped = 0
    private var paths: [String] = []
    private var memory: [UnsafeMutableRawBufferPointer] = []
    private var queued: [UInt32] = []

    init(_ paths: String...) { for path in paths { nodes[path] = Node() } }

    func open(_ path: String) -> Int32 {
        if openFault != 0 { return -openFault }
        if refused.contains(path) { return -EACCES }
        guard nodes[path] != nil else { return -ENOENT }
        isOpen += 1
        paths.append(path)
        return Int32(paths.count - 1)
    }

    func close(_ device: Int32) { isOpen -= 1 }

    func control(_ device: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        if var list = faults[request], !list.isEmpty {
            let fault = list.removeFirst()
            faults[request] = list
            return fault
        }
        switch request {
        case fh_vidioc_querycap:
            let value = argument.assumingMemoryBound(to: v4l2_capability.self)
            let node = nodes[paths[Int(device)]]!
            withUnsafeMutableBytes(of: &value.pointee.card) { $0.copyBytes(from: Array(node.name.utf8) + [0]) }
            withUnsafeMutableBytes(of: &value.pointee.driver) { $0.copyBytes(from: Array(node.driver.utf8) + [0]) }
            value.pointee.capabilities = node.capabilities
        case fh_vidioc_try_fmt, fh_vidioc_s_fmt:
            let value = argument.assumingMemoryBound(to: v4l2_format.self)
            spoil(&value.pointee.fmt.pix)
            format = value.pointee.fmt.pix
            if request == fh_vidioc_s_fmt { setCount += 1 }
        case fh_vidioc_s_parm:
            interval = argument.assumingMemoryBound(to: v4l2_streamparm.self).pointee.parm.output.timeperframe
        case fh_vidioc_reqbufs:
            argument.assumingMemoryBound(to: v4l2_requestbuffers.self).pointee.count = bufferCount
            memory = (0..<bufferCount).map { _ in
                .allocate(byteCount: Int(format.sizeimage + bufferRest), alignment: 64)
            }
            for buffer in memory { buffer.initializeMemory(as: UInt8.self, repeating: 0) }
        case fh_vidioc_querybuf:
            let value = argument.assumingMemoryBound(to: v4l2_buffer.self)
            value.pointee.length = UInt32(memory[Int(value.pointee.index)].count)
            value.pointee.m.offset = value.pointee.index << 24
            spoilBuffer(&value.pointee)
        case fh_vidioc_qbuf:
            let value = argument.assumingMemoryBound(to: v4l2_buffer.self).pointee
            guard !queued.contains(value.index) else { return EINVAL }
            queued.append(value.index)
            pictures.append(Array(memory[Int(value.index)].prefix(Int(value.bytesused))))
        case fh_vidioc_dqbuf:
            guard isStreaming, !queued.isEmpty else { return EINVAL }
            argument.assumingMemoryBound(to: v4l2_buffer.self).pointee.index = queued.removeFirst()
            spoilBuffer(&argument.assumingMemoryBound(to: v4l2_buffer.self).pointee)
        case fh_vidioc_streamon: isStreaming = true
        case fh_vidioc_streamoff: isStreaming = false
        default: return ENOTTY
        }
        return 0
    }

    func map(_ device: Int32, byteCount: Int, offset: Int) -> UnsafeMutableRawPointer? {
        mapped += 1
        return memory[offset >> 24].baseAddress
    }

    func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int) { mapped -= 1 }

    func waitForRoom(_ device: Int32, milliseconds: Int32) {}
    func names(in folder: String) -> [String] {
        nodes.keys.map { String($0.dropFirst("/dev/".count)) } + [".", "null"]
    }
    func group(of path: String) -> String? { "video" }
}

@Suite struct V4L2SinkTests {
    private static let format = VideoFormat(.i420, width: 6, height: 4, frameRate: Rational(30_000, 1001))

    private func open(
        _ calls: ScriptedOutput, _ options: String = "{}", _ format: VideoFormat = format
    ) throws -> StageDriver<V4L2Sink> {
        try OutputCallsInUse.$current.withValue(calls) {
            try StageDriver(V4L2Sink.self, options: options, input: .video(format))
        }
    }

    private func fault(_ calls: ScriptedOutput, _ options: String = "{}", _ format: VideoFormat = format) -> String? {
        #expect(throws: FrameHostError.self) { _ = try open(calls, options, format) }?.description
    }

    @Test(arguments: [(PixelFormat.i420, "YU12", 6), (.nv12, "NV12", 6), (.yuyv, "YUYV", 12)], [0, 16])
    func writesPicturesAsTheDeviceWantsThem(kind: (PixelFormat, String, Int), padding: Int) throws {
        let calls = ScriptedOutput("/dev/video3")
        let stride = kind.2 + padding
        calls.spoil = { answer in
            answer.bytesperline = UInt32(stride)
            answer.sizeimage = UInt32(stride * 4 * 2)
        }
        var format = Self.format
        format.pixelFormat = kind.0
        let driver = try open(calls, "{}", format)
        #expect(calls.setCount == 1)
        #expect(withUnsafeBytes(of: calls.format.pixelformat) { String(decoding: $0, as: UTF8.self) } == kind.1)
        #expect(calls.interval.numerator == 1001 && calls.interval.denominator == 30_000)
        try driver.send(
            driver.makeFrame { frame in
                for index in 0..<frame.planeCount {
                    frame.withMutablePlane(index) { plane in
                        for y in 0..<plane.height { plane.row(y).update(repeating: UInt8(10 * (index + 1) + y)) }
                    }
                }
            })
        // Nothing behind the last row, whatever room the buffer has.
        let rows = kind.0 == .yuyv ? 4 * stride : kind.0 == .nv12 ? 6 * stride : 4 * stride + 4 * (stride / 2)
        var expected = [UInt8](repeating: 0, count: rows)
        var offset = 0
        for plane in 0..<kind.0.planeCount {
            let own = kind.0 == .i420 && plane > 0 ? stride / 2 : stride
            for y in 0..<kind.0.rows(plane: plane, height: 4) {
                for x in 0..<kind.0.rowBytes(plane: plane, width: 6) {
                    expected[offset + y * own + x] = UInt8(10 * (plane + 1) + y)
                }
            }
            offset += own * kind.0.rows(plane: plane, height: 4)
        }
        #expect(calls.pictures == [expected])
        #expect(calls.isStreaming)
        for _ in 0..<5 { try driver.send(driver.makeFrame()) }
        #expect(calls.pictures.count == 6)
        try driver.stop()
        #expect(calls.isOpen == 0 && calls.mapped == 0 && !calls.isStreaming)
    }

    @Test func saysHowToMakeADeviceWhereNoneIs() {
        let camera = ScriptedOutput("/dev/video0")
        camera.nodes["/dev/video0"]!.capabilities = UInt32(V4L2_CAP_VIDEO_CAPTURE)
        let make = "sudo modprobe v4l2loopback video_nr=10 card_label=framehost exclusive_caps=1"
        #expect(
            fault(camera)
                == "there is no virtual camera. Make one with v4l2loopback: `\(make)` (Debian: first apt-get install v4l2loopback-dkms)."
        )
        #expect(
            fault(camera, #"{ "device": "/dev/video0" }"#)
                == "device: '/dev/video0' (framehost) does not accept pictures: it must be a video output. Use a virtual camera; v4l2loopback makes one: `\(make)`."
        )
        // After the command, the option names the camera that it has made.
        for (device, command, further) in [
            ("OBS", make.replacing("framehost", with: "OBS"), ""),
            ("/dev/video9", make.replacing("10", with: "9"), ""),
            ("OBS Camera", make, " Then set \"device\": \"/dev/video10\"."),
            ("/dev/camera", make, " Then set \"device\": \"/dev/video10\"."),
        ] {
            #expect(
                fault(camera, #"{ "device": "\#(device)" }"#)
                    == "device: there is no virtual camera '\(device)'. Make one with v4l2loopback: `\(command)` (Debian: first apt-get install v4l2loopback-dkms).\(further)"
            )
        }
        #expect(fault(camera, #"{ "device": "/dev/video9" }"#)?.contains(" video_nr=9 card_label=framehost ") == true)
        #expect(
            fault(ScriptedOutput("/dev/video3"), #"{ "device": "/dev/video9" }"#)
                == "device: there is no virtual camera '/dev/video9'. Use 'framehost' (/dev/video3).")
        #expect(camera.isOpen == 0)
    }

    @Test func findsADeviceByItsNameOrAPart() throws {
        let calls = ScriptedOutput("/dev/video3", "/dev/video12")
        calls.nodes["/dev/video12"]!.name = "Studio Camera"
        _ = try open(calls, #"{ "device": "studio" }"#)
        #expect(
            fault(calls, #"{ "device": "o" }"#)
                == "device: 'o' names 2 devices: /dev/video3, /dev/video12. Use one of their paths.")
        #expect(
            fault(calls, #"{ "device": "x" }"#)
                == "device: there is no virtual camera 'x'. Use one of 'framehost' (/dev/video3), 'Studio Camera' (/dev/video12)."
        )
    }

    @Test func checksWhatTheDeviceAnswers() {
        let calls = ScriptedOutput("/dev/video3")
        let others: [((inout v4l2_pix_format) -> Void, String)] = [
            ({ $0.width = 640 }, "640x4, but 6x4 was requested"),
            ({ $0.pixelformat = 1 }, "another format, but i420 was requested"),
            ({ $0.bytesperline = 5 }, "rows of 5 bytes, but 6 are needed"),
            ({ $0.bytesperline = .max }, "rows of 4294967295 bytes, but 6 are needed"),
            ({ $0.sizeimage = 35 }, "pictures of 35 bytes, but 36 are needed"),
            ({ $0.sizeimage = .max }, "pictures of 4294967295 bytes, but 36 are needed"),
        ]
        for (spoil, what) in others {
            calls.spoil = spoil
            #expect(
                fault(calls)
                    == "the driver of '/dev/video3' gives \(what). End the other programs that use this device, then try again: the first program that reads from or writes to a device sets the format of that device."
            )
        }
        #expect(calls.isOpen == 0)
    }

    @Test func namesTheGroupToJoinAndWhoeverIsThere() {
        let calls = ScriptedOutput("/dev/video3")
        for (code, remedy) in [
            (
                EACCES,
                "Join the group 'video', which may open it: `sudo usermod -aG video $USER`. Then log in again.\n  open: Permission denied"
            ),
            (
                EPERM,
                "Give the container this device (`--device=/dev/video3`); in a systemd service, allow it with DeviceAllow= and restart the service.\n  open: Operation not permitted"
            ),
        ] {
            calls.openFault = code
            for options in [#"{ "device": "/dev/video3" }"#, "{}", #"{ "device": "framehost" }"#] {
                #expect(fault(calls, options) == "this user may not open '/dev/video3'. \(remedy)")
            }
        }
        calls.openFault = 0
        calls.faults = [fh_vidioc_s_fmt: [EBUSY]]
        #expect(fault(calls)?.hasPrefix("'/dev/video3' is in use. End the program") == true)
    }

    @Test func namesARefusalOnlyWhereNoDeviceCanBeOpened() {
        let calls = ScriptedOutput("/dev/video0", "/dev/video1")
        calls.refused = ["/dev/video0"]
        calls.nodes["/dev/video1"]!.capabilities = UInt32(V4L2_CAP_VIDEO_CAPTURE)
        #expect(fault(calls)?.hasPrefix("there is no virtual camera. Make one with v4l2loopback:") == true)
        #expect(
            fault(calls, #"{ "device": "x" }"#)?.hasPrefix("device: there is no virtual camera 'x'. Make one with")
                == true)
        #expect(calls.isOpen == 0)
    }

    @Test func saysThatAPathIsNoDevice() {
        let calls = ScriptedOutput("/tmp/clip.mp4")
        calls.faults = [fh_vidioc_querycap: [ENOTTY]]
        #expect(
            fault(calls, #"{ "device": "/tmp/clip.mp4" }"#)
                == """
                device: '/tmp/clip.mp4' is not a video device. Name one, such as /dev/video10; v4l2loopback makes one: `\(OutputFault.loadModule)`.
                  VIDIOC_QUERYCAP: Inappropriate ioctl for device
                """)
        #expect(calls.isOpen == 0)
    }

    @Test func goesOnAfterInterruptionsAndFailsWhenTheDeviceHasGone() throws {
        let calls = ScriptedOutput("/dev/video3")
        calls.faults = [fh_vidioc_querycap: [EINTR], fh_vidioc_s_fmt: [EINTR, EINTR]]
        let driver = try open(calls)
        for _ in 0..<2 { try driver.send(driver.makeFrame()) }
        // All buffers are the driver's: the stage waits until one comes back.
        calls.faults = [fh_vidioc_dqbuf: [EAGAIN, EINTR, EAGAIN]]
        try driver.send(driver.makeFrame())
        #expect(calls.pictures.count == 3)
        calls.faults = [fh_vidioc_qbuf: [ENODEV]]
        let gone = #expect(throws: FrameHostError.self) { try driver.send(driver.makeFrame()) }
        #expect(gone?.what == "'/dev/video3' has disappeared")
        try driver.stop()
        #expect(calls.isOpen == 0 && calls.mapped == 0)
    }

    @Test func checksTheBuffersThatTheDriverGives() throws {
        let calls = ScriptedOutput("/dev/video3")
        calls.bufferCount = 0
        #expect(fault(calls)?.hasPrefix("the driver of '/dev/video3' gives no buffers.") == true)
        calls.bufferCount = 2
        calls.spoilBuffer = { $0.length = 35 }
        #expect(
            fault(calls)?.hasPrefix("the driver of '/dev/video3' gives buffers of 35 bytes, but 36 are needed.") == true
        )
        calls.spoilBuffer = { _ in }
        let driver = try open(calls)
        for _ in 0..<2 { try driver.send(driver.makeFrame()) }
        calls.spoilBuffer = { $0.index = 7 }
        let odd = #expect(throws: FrameHostError.self) { try driver.send(driver.makeFrame()) }
        #expect(odd?.what == "the driver of '/dev/video3' gives the buffer 7, but has only 2 buffers")
    }

    /// v4l2loopback with exclusive_caps says that it takes pictures only while nobody gives it any.
    @Test func saysThatAVirtualCameraIsInUse() {
        let calls = ScriptedOutput("/dev/video10")
        calls.nodes["/dev/video10"] = .init(
            capabilities: UInt32(V4L2_CAP_VIDEO_CAPTURE), driver: "v4l2 loopback")
        for options in ["{}", #"{ "device": "framehost" }"#, #"{ "device": "/dev/video10" }"#] {
            #expect(
                fault(calls, options)
                    == "'/dev/video10' is in use. End the program that writes to it. Only one program can write to a virtual camera. If this chain itself writes to it, restart the chain to make this change."
            )
        }
    }

    /// Where no matrix is named, the height says it.
    @Test(arguments: [
        (480, UInt8(2), V4L2_COLORSPACE_SMPTE170M), (720, 2, V4L2_COLORSPACE_REC709), (480, 1, V4L2_COLORSPACE_REC709),
        (720, 6, V4L2_COLORSPACE_SMPTE170M), (720, 7, V4L2_COLORSPACE_SMPTE240M), (720, 9, V4L2_COLORSPACE_BT2020),
    ]) func tellsTheDeviceTheMatrix(height: Int, matrix: UInt8, expected: v4l2_colorspace) throws {
        let calls = ScriptedOutput("/dev/video3")
        let color = ColorDescription(matrix: matrix)
        let driver = try open(
            calls, "{}", VideoFormat(.i420, width: 640, height: height, frameRate: Rational(25), color: color))
        #expect(calls.format.colorspace == expected.rawValue)
        try driver.stop()
    }

    @Test func refusesOddSides() {
        var format = Self.format
        format.width = 7
        #expect(
            fault(ScriptedOutput("/dev/video3"), "{}", format)
                == "the pictures are 7x4, but a virtual camera needs even sides. Put 'crop-orient' with an even 'size' before this stage."
        )
    }
}
