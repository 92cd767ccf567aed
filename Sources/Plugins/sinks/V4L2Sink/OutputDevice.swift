// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore
import Shared
import Glibc

/// An open output device. The only place that knows the kernel's structs. One thread at a time.
final class OutputDevice {
    let path: String
    let name: String
    /// Whether it takes pictures.
    let isOutput: Bool
    /// Whether it is a virtual camera. With `exclusive_caps`, one that is written to no longer says that it takes
    /// pictures.
    let isLoopback: Bool
    private var buffers: [UnsafeMutableRawBufferPointer] = []
    /// Buffers that were never handed to the driver.
    private var fresh = 0
    private var isStreaming = false
    private let calls: any OutputCalls
    private var descriptor: Int32

    /// How the device expects a picture's bytes.
    struct Layout: Equatable {
        /// From row to row of the first plane.
        var strideBytes: Int
        /// Of a whole picture.
        var byteCount: Int
    }

    /// How many buffers are requested, and the most that are accepted.
    private static let wantedBuffers: UInt32 = 4
    private static let mostBuffers = 32

    /// Pixel formats and their FourCC (videodev2.h).
    private static let codes: [PixelFormat: UInt32] = [
        .i420: code("YU12"), .nv12: code("NV12"), .yuyv: code("YUYV"),
    ]

    private static func code(_ text: String) -> UInt32 { text.utf8.reversed().reduce(0) { $0 << 8 | UInt32($1) } }

    /// - Throws: ``FrameHostError``.
    convenience init(_ path: String, _ calls: any OutputCalls) throws {
        try self.init(path, opened: calls.open(path), calls)
    }

    /// - Parameter descriptor: What `open` of the calls gave for the path: less than 0 where it failed.
    /// - Throws: ``FrameHostError``.
    private init(_ path: String, opened descriptor: Int32, _ calls: any OutputCalls) throws {
        self.path = path
        self.calls = calls
        self.descriptor = descriptor
        guard descriptor >= 0 else {
            throw OutputFault.of("open", -descriptor, path, group: calls.group(of: path))
        }
        var value = v4l2_capability()
        let fault = Self.control(calls, descriptor, fh_vidioc_querycap, &value)
        let own = value.capabilities & UInt32(V4L2_CAP_DEVICE_CAPS) != 0 ? value.device_caps : value.capabilities
        isOutput = own & UInt32(V4L2_CAP_VIDEO_OUTPUT) != 0
        isLoopback = withUnsafeBytes(of: &value.driver) { $0.starts(with: "v4l2 loopback".utf8) }
        name = withUnsafeBytes(of: &value.card) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        guard fault == 0 else {
            calls.close(descriptor)
            self.descriptor = -1
            throw OutputFault.of("VIDIOC_QUERYCAP", fault, path, group: nil)
        }
    }

    deinit { close() }

    func close() {
        guard descriptor >= 0 else { return }
        var type = Int32(V4L2_BUF_TYPE_VIDEO_OUTPUT.rawValue)
        if isStreaming { _ = Self.control(calls, descriptor, fh_vidioc_streamoff, &type) }
        for buffer in buffers { calls.unmap(buffer.baseAddress!, byteCount: buffer.count) }
        (buffers, isStreaming) = ([], false)
        calls.close(descriptor)
        descriptor = -1
    }

    private static func control<Value>(
        _ calls: any OutputCalls, _ descriptor: Int32, _ request: UInt, _ value: inout Value
    ) -> Int32 {
        while true {
            let fault = withUnsafeMutablePointer(to: &value) { calls.control(descriptor, request, $0) }
            if fault != EINTR { return fault }
        }
    }

    // MARK: Format

    /// Asks for a format, or sets it, and checks the device's answer.
    func agree(on format: VideoFormat, isSet: Bool) throws -> Layout {
        guard let code = Self.codes[format.pixelFormat] else {
            throw FrameHostError(.broken, what: "v4l2-sink was handed \(format.pixelFormat.rawValue)")
        }
        var value = v4l2_format()
        value.type = V4L2_BUF_TYPE_VIDEO_OUTPUT.rawValue
        value.fmt.pix.width = UInt32(format.width)
        value.fmt.pix.height = UInt32(format.height)
        value.fmt.pix.pixelformat = code
        value.fmt.pix.field = V4L2_FIELD_NONE.rawValue
        value.fmt.pix.bytesperline = UInt32(format.pixelFormat.rowBytes(plane: 0, width: format.width))
        value.fmt.pix.sizeimage = UInt32(Self.bytes(format, stride: Int(value.fmt.pix.bytesperline)))
        value.fmt.pix.colorspace =
            switch format.assumedMatrix {
            case 1: V4L2_COLORSPACE_REC709.rawValue
            case 7: V4L2_COLORSPACE_SMPTE240M.rawValue
            case 9, 10: V4L2_COLORSPACE_BT2020.rawValue
            default: V4L2_COLORSPACE_SMPTE170M.rawValue
            }
        value.fmt.pix.quantization =
            format.color.range == .full
            ? UInt32(V4L2_QUANTIZATION_FULL_RANGE.rawValue) : UInt32(V4L2_QUANTIZATION_LIM_RANGE.rawValue)
        let fault = Self.control(calls, descriptor, isSet ? fh_vidioc_s_fmt : fh_vidioc_try_fmt, &value)
        guard fault == 0 else {
            throw OutputFault.of(isSet ? "VIDIOC_S_FMT" : "VIDIOC_TRY_FMT", fault, path, group: nil)
        }
        return try Self.layout(value.fmt.pix, of: format, code, path)
    }

    private static func layout(_ answer: v4l2_pix_format, of format: VideoFormat, _ code: UInt32, _ path: String) throws
        -> Layout
    {
        guard answer.width == UInt32(format.width), answer.height == UInt32(format.height) else {
            throw OutputFault.answered(
                path, "\(answer.width)x\(answer.height), but \(format.width)x\(format.height) was requested")
        }
        guard answer.pixelformat == code else {
            throw OutputFault.answered(path, "another format, but \(format.pixelFormat.rawValue) was requested")
        }
        let row = format.pixelFormat.rowBytes(plane: 0, width: format.width)
        // 0: the driver leaves it to the format.
        let stride = answer.bytesperline == 0 ? row : Int(answer.bytesperline)
        guard stride >= row, stride <= 1 << 20 else {
            throw OutputFault.answered(path, "rows of \(answer.bytesperline) bytes, but \(row) are needed")
        }
        let least = bytes(format, stride: stride)
        let whole = answer.sizeimage == 0 ? least : Int(answer.sizeimage)
        guard whole >= least, whole <= 1 << 30 else {
            throw OutputFault.answered(path, "pictures of \(answer.sizeimage) bytes, but \(least) are needed")
        }
        // Programs that read v4l2loopback refuse a picture that is followed by the rest of the buffer.
        return Layout(strideBytes: stride, byteCount: least)
    }

    /// V4L2, "YU12" and "NV12": chroma rows of planar pictures have half the padding, of interleaved ones all.
    static func stride(_ format: PixelFormat, plane: Int, first: Int) -> Int {
        format == .i420 && plane > 0 ? first / 2 : first
    }

    private static func bytes(_ format: VideoFormat, stride: Int) -> Int {
        (0..<format.pixelFormat.planeCount).reduce(0) {
            $0 + Self.stride(format.pixelFormat, plane: $1, first: stride)
                * format.pixelFormat.rows(plane: $1, height: format.height)
        }
    }

    /// Sets how many pictures come in a second. A device without this call takes them as they come.
    func set(rate: Rational) {
        guard rate.numerator > 0 else { return }
        var value = v4l2_streamparm()
        value.type = V4L2_BUF_TYPE_VIDEO_OUTPUT.rawValue
        value.parm.output.timeperframe = v4l2_fract(
            numerator: UInt32(rate.denominator), denominator: UInt32(rate.numerator))
        _ = Self.control(calls, descriptor, fh_vidioc_s_parm, &value)
    }

    // MARK: Pictures

    /// Maps the driver's buffers, each with room for a picture.
    func begin(_ layout: Layout) throws {
        var request = v4l2_requestbuffers()
        request.count = Self.wantedBuffers
        request.type = V4L2_BUF_TYPE_VIDEO_OUTPUT.rawValue
        request.memory = V4L2_MEMORY_MMAP.rawValue
        try call("VIDIOC_REQBUFS", fh_vidioc_reqbufs, &request)
        let count = Int(min(request.count, UInt32(Self.mostBuffers)))
        guard count > 0 else { throw OutputFault.answered(path, "no buffers") }
        for index in 0..<count {
            var value = Self.buffer(index)
            try call("VIDIOC_QUERYBUF", fh_vidioc_querybuf, &value)
            let bytes = Int(value.length)
            guard bytes >= layout.byteCount, bytes <= 1 << 30 else {
                throw OutputFault.answered(path, "buffers of \(bytes) bytes, but \(layout.byteCount) are needed")
            }
            guard let base = calls.map(descriptor, byteCount: bytes, offset: Int(value.m.offset)) else {
                throw OutputFault.of("mmap", ENOMEM, path, group: nil)
            }
            buffers.append(UnsafeMutableRawBufferPointer(start: base, count: bytes))
        }
    }

    private static func buffer(_ index: Int) -> v4l2_buffer {
        var value = v4l2_buffer()
        value.index = UInt32(index)
        value.type = V4L2_BUF_TYPE_VIDEO_OUTPUT.rawValue
        value.memory = V4L2_MEMORY_MMAP.rawValue
        return value
    }

    private func call<Value>(_ name: String, _ request: UInt, _ value: inout Value) throws {
        let fault = Self.control(calls, descriptor, request, &value)
        if fault != 0 { throw OutputFault.of(name, fault, path, group: nil) }
    }

    /// Hands the driver one picture, which `fill` writes to its buffer; false when the run was stopped meanwhile.
    func show(_ layout: Layout, unless isStopped: () -> Bool, fill: (UnsafeMutableRawPointer) -> Void) throws -> Bool {
        guard let index = try nextBuffer(unless: isStopped) else { return false }
        fill(buffers[index].baseAddress!)
        var value = Self.buffer(index)
        value.bytesused = UInt32(layout.byteCount)
        value.length = UInt32(buffers[index].count)
        value.field = V4L2_FIELD_NONE.rawValue
        try call("VIDIOC_QBUF", fh_vidioc_qbuf, &value)
        guard !isStreaming else { return true }
        var type = Int32(V4L2_BUF_TYPE_VIDEO_OUTPUT.rawValue)
        try call("VIDIOC_STREAMON", fh_vidioc_streamon, &type)
        isStreaming = true
        return true
    }

    /// A buffer that the driver does not have; nil when the run was stopped meanwhile.
    private func nextBuffer(unless isStopped: () -> Bool) throws -> Int? {
        if fresh < buffers.count {
            defer { fresh += 1 }
            return fresh
        }
        while true {
            var value = Self.buffer(0)
            let fault = Self.control(calls, descriptor, fh_vidioc_dqbuf, &value)
            if fault == 0 {
                let index = Int(value.index)
                guard buffers.indices.contains(index) else {
                    throw OutputFault.answered(
                        path,
                        "the buffer \(index), but has only \(buffers.count == 1 ? "1 buffer" : "\(buffers.count) buffers")"
                    )
                }
                return index
            }
            guard fault == EAGAIN else { throw OutputFault.of("VIDIOC_DQBUF", fault, path, group: nil) }
            if isStopped() { return nil }
            calls.waitForRoom(descriptor, milliseconds: 50)
        }
    }

    // MARK: Which one

    /// Finds the requested output device by its path, or by its name or a part of it; nil for the first one.
    static func find(_ asked: String?, _ calls: any OutputCalls) throws -> OutputDevice {
        if let asked, asked.hasPrefix("/") {
            let descriptor = calls.open(asked)
            guard descriptor != -ENOENT else {
                let there = all(calls).devices.filter(\.isOutput)
                throw OutputFault.none(asked: asked, there: there.map { ($0.path, $0.name) })
            }
            let device = try OutputDevice(asked, opened: descriptor, calls)
            guard device.isOutput else {
                throw device.isLoopback ? OutputFault.inUse(asked) : OutputFault.noOutput(asked, name: device.name)
            }
            return device
        }
        let (devices, refusal) = all(calls)
        let there = devices.filter(\.isOutput)
        // Another program writes to it: it exists, but is not free.
        let busy = devices.first { device in
            device.isLoopback && !device.isOutput
                && (asked.map { device.name.lowercased().contains($0.lowercased()) } ?? there.isEmpty)
        }
        guard let asked else {
            if let first = there.first { return first }
            throw busy.map { OutputFault.inUse($0.path) } ?? refusal ?? OutputFault.none(asked: nil, there: [])
        }
        let exact = there.filter { $0.name == asked }
        let meant = exact.isEmpty ? there.filter { $0.name.lowercased().contains(asked.lowercased()) } : exact
        guard let first = meant.first else {
            if let busy { throw OutputFault.inUse(busy.path) }
            if let refusal { throw refusal }
            throw OutputFault.none(asked: asked, there: there.map { ($0.path, $0.name) })
        }
        guard meant.count == 1 else { throw OutputFault.several(asked, meant.map(\.path)) }
        return first
    }

    /// All video devices that can be opened, in the order of their numbers.
    ///
    /// - Returns: Where none can be opened, also the fault of the first one that this user may not open.
    private static func all(_ calls: any OutputCalls) -> (devices: [OutputDevice], refusal: FrameHostError?) {
        let numbers = calls.names(in: "/dev").compactMap {
            $0.hasPrefix("video") ? Int($0.dropFirst("video".count)) : nil
        }
        var devices: [OutputDevice] = []
        var refusal: FrameHostError?
        for number in numbers.sorted() {
            let path = "/dev/video\(number)"
            let descriptor = calls.open(path)
            do { devices.append(try OutputDevice(path, opened: descriptor, calls)) } catch {
                // The second comes from the device cgroup of a container.
                let isRefused = descriptor == -EACCES || descriptor == -EPERM
                if isRefused, refusal == nil { refusal = FrameHostError.wrap(error) }
            }
        }
        return (devices, devices.isEmpty ? refusal : nil)
    }
}
