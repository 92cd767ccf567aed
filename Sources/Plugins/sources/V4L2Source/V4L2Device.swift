// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore

/// A call of the kernel that failed.
struct CallFault: Error, Equatable {
    /// The call's name in its manual page: `VIDIOC_S_FMT`.
    var call: String
    var errno: Int32

    /// Whether the device has gone, or does not work until it is opened again: after a driver's fatal error videobuf2
    /// returns EIO forever.
    var isLoss: Bool { [ENODEV, ENXIO, EIO, EPIPE, EPROTO, ESHUTDOWN, ETIMEDOUT].contains(errno) }
    /// `VIDIOC_S_FMT: Device or resource busy (EBUSY)`.
    var text: String { "\(call): \(ErrnoText.of(errno))" }
}

/// An open V4L2 device and its ioctls. The only file beside ``CaptureQueue`` that knows the kernel's structs.
///
/// Used by one thread at a time. The numbers that it returns are the driver's, and unchecked unless a method says
/// otherwise.
final class V4L2Device {
    let path: String
    let calls: any DeviceCalls
    private(set) var descriptor: Int32
    let identity: Identity

    /// VIDIOC_QUERYCAP.
    struct Identity: Equatable {
        var name = ""
        var driver = ""
        var bus = ""
        /// Whether it gives pictures, by the streaming interface.
        var isCamera = false
    }

    private static let streamType = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue

    /// - Throws: ``CallFault``.
    init(path: String, calls: any DeviceCalls) throws(CallFault) {
        self.path = path
        self.calls = calls
        descriptor = calls.open(path)
        guard descriptor >= 0 else { throw CallFault(call: "open", errno: -descriptor) }
        var value = v4l2_capability()
        let fault = Self.control(calls, descriptor, fh_vidioc_querycap, &value)
        guard fault == 0 else {
            calls.close(descriptor)
            throw CallFault(call: "VIDIOC_QUERYCAP", errno: fault)
        }
        let all = value.capabilities
        let own = all & UInt32(V4L2_CAP_DEVICE_CAPS) != 0 ? value.device_caps : all
        identity = Identity(
            name: Self.text(of: &value.card), driver: Self.text(of: &value.driver), bus: Self.text(of: &value.bus_info),
            isCamera: own & UInt32(V4L2_CAP_VIDEO_CAPTURE) != 0 && own & UInt32(V4L2_CAP_STREAMING) != 0)
    }

    deinit { close() }

    func close() {
        guard descriptor >= 0 else { return }
        calls.close(descriptor)
        descriptor = -1
    }

    // MARK: Calls

    private static func control<Value>(
        _ calls: any DeviceCalls, _ descriptor: Int32, _ request: UInt, _ value: inout Value
    ) -> Int32 {
        while true {
            let fault = withUnsafeMutablePointer(to: &value) { calls.control(descriptor, request, $0) }
            if fault != EINTR { return fault }
        }
    }

    /// - Throws: ``CallFault``.
    private func call<Value>(_ name: String, _ request: UInt, _ value: inout Value) throws(CallFault) {
        let fault = Self.control(calls, descriptor, request, &value)
        if fault != 0 { throw CallFault(call: name, errno: fault) }
    }

    /// Returns the errno, 0 on success. Does not throw, for the frame path.
    private func quiet<Value>(_ request: UInt, _ value: inout Value) -> Int32 {
        Self.control(calls, descriptor, request, &value)
    }

    /// Text in a field of fixed length, which a driver may fill to the last byte.
    private static func text<Field>(of field: inout Field) -> String {
        withUnsafeBytes(of: &field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    // MARK: What it offers

    /// A longer list is a driver's fault: the rest is not read.
    private static let longestList: UInt32 = 512

    /// VIDIOC_ENUM_FMT.
    func formats() -> [(code: FourCC, title: String)] {
        var found: [(FourCC, String)] = []
        for index in 0..<Self.longestList {
            var value = v4l2_fmtdesc()
            value.index = index
            value.type = Self.streamType
            guard quiet(fh_vidioc_enum_fmt, &value) == 0 else { break }
            found.append((FourCC(code: value.pixelformat), Self.text(of: &value.description)))
        }
        return found
    }

    /// VIDIOC_ENUM_FRAMESIZES.
    func sizes(_ code: FourCC) -> SizeOffer {
        var listed: [PictureSize] = []
        for index in 0..<Self.longestList {
            var value = v4l2_frmsizeenum()
            value.index = index
            value.pixel_format = code.code
            guard quiet(fh_vidioc_enum_framesizes, &value) == 0 else { break }
            guard value.type == V4L2_FRMSIZE_TYPE_DISCRETE.rawValue else {
                let steps = fh_sizes(&value)
                return .steps(
                    width: Steps(steps.min_width, steps.max_width, steps.step_width),
                    height: Steps(steps.min_height, steps.max_height, steps.step_height))
            }
            let size = fh_size(&value)
            if let size = PictureSize(driver: size.width, size.height), !listed.contains(size) { listed.append(size) }
        }
        return .list(listed)
    }

    /// VIDIOC_ENUM_FRAMEINTERVALS, as rates.
    func rates(_ code: FourCC, _ size: PictureSize) -> RateOffer {
        var listed: [Rational] = []
        for index in 0..<Self.longestList {
            var value = v4l2_frmivalenum()
            value.index = index
            value.pixel_format = code.code
            value.width = UInt32(size.width)
            value.height = UInt32(size.height)
            guard quiet(fh_vidioc_enum_frameintervals, &value) == 0 else { break }
            guard value.type == V4L2_FRMIVAL_TYPE_DISCRETE.rawValue else {
                let steps = fh_intervals(&value)
                guard let fastest = Rational(interval: steps.min), let slowest = Rational(interval: steps.max),
                    slowest.value <= fastest.value
                else { return .list([]) }
                return .range(slowest: slowest, fastest: fastest)
            }
            if let rate = Rational(interval: fh_interval(&value)), !listed.contains(rate) { listed.append(rate) }
        }
        return .list(listed.sorted { $0.value > $1.value })
    }

    // MARK: What is agreed

    /// VIDIOC_TRY_FMT or VIDIOC_S_FMT: the driver's answer, which may have another size and another format.
    ///
    /// - Throws: ``CallFault``.
    func format(_ code: FourCC, _ size: PictureSize, isSet: Bool) throws(CallFault) -> v4l2_pix_format {
        var value = v4l2_format()
        value.type = Self.streamType
        value.fmt.pix.width = UInt32(size.width)
        value.fmt.pix.height = UInt32(size.height)
        value.fmt.pix.pixelformat = code.code
        value.fmt.pix.field = V4L2_FIELD_NONE.rawValue
        try call(
            isSet ? "VIDIOC_S_FMT" : "VIDIOC_TRY_FMT", isSet ? fh_vidioc_s_fmt : fh_vidioc_try_fmt, &value)
        return value.fmt.pix
    }

    /// VIDIOC_S_PARM: sets the frame interval. Returns the rate that the driver has set, zero where it does not say.
    ///
    /// - Throws: ``CallFault``.
    func setRate(_ rate: Rational) throws(CallFault) -> Rational {
        var value = v4l2_streamparm()
        value.type = Self.streamType
        value.parm.capture.timeperframe = v4l2_fract(
            numerator: UInt32(rate.denominator), denominator: UInt32(rate.numerator))
        try call("VIDIOC_S_PARM", fh_vidioc_s_parm, &value)
        return Rational(interval: value.parm.capture.timeperframe) ?? Rational(0)
    }

    // MARK: Buffers

    enum Memory { case mapped, lent }

    /// VIDIOC_REQBUFS: how many buffers the driver grants, and whether it can use a program's memory.
    ///
    /// - Throws: ``CallFault``.
    func requestBuffers(_ count: Int, _ memory: Memory) throws(CallFault) -> (count: Int, takesOurs: Bool?) {
        var value = v4l2_requestbuffers()
        value.count = UInt32(count)
        value.type = Self.streamType
        value.memory = Self.code(memory)
        try call("VIDIOC_REQBUFS", fh_vidioc_reqbufs, &value)
        let takesOurs = value.capabilities == 0 ? nil : value.capabilities & UInt32(V4L2_BUF_CAP_SUPPORTS_USERPTR) != 0
        return (Int(value.count), takesOurs)
    }

    private static func code(_ memory: Memory) -> UInt32 {
        memory == .mapped ? V4L2_MEMORY_MMAP.rawValue : V4L2_MEMORY_USERPTR.rawValue
    }

    private static func buffer(_ index: Int, _ memory: Memory) -> v4l2_buffer {
        var value = v4l2_buffer()
        value.index = UInt32(index)
        value.type = streamType
        value.memory = code(memory)
        return value
    }

    /// VIDIOC_QUERYBUF and mmap(2) of one of the driver's buffers.
    ///
    /// - Throws: ``CallFault``.
    func map(_ index: Int) throws(CallFault) -> UnsafeMutableRawBufferPointer {
        var value = Self.buffer(index, .mapped)
        try call("VIDIOC_QUERYBUF", fh_vidioc_querybuf, &value)
        let bytes = Int(value.length)
        guard bytes > 0, let base = calls.map(descriptor, byteCount: bytes, offset: Int(value.m.offset)) else {
            throw CallFault(call: "mmap", errno: ENOMEM)
        }
        return UnsafeMutableRawBufferPointer(start: base, count: bytes)
    }

    /// VIDIOC_QBUF: hands the driver one of its own buffers, or memory of ours. Returns the errno, 0 on success.
    func enqueue(_ index: Int, _ ours: UnsafeMutableRawBufferPointer? = nil) -> Int32 {
        var value = Self.buffer(index, ours == nil ? .mapped : .lent)
        if let ours {
            value.m.userptr = UInt(bitPattern: ours.baseAddress!)
            value.length = UInt32(clamping: ours.count)
        }
        return quiet(fh_vidioc_qbuf, &value)
    }

    /// A buffer that the driver has filled.
    struct Filled {
        var index: Int
        var byteCount: Int
        /// Counts pictures, including lost ones; wraps around.
        var sequence: UInt32
        /// The time of CLOCK_MONOTONIC, nanoseconds; nil where the driver uses another clock or gives no time.
        var time: Int64?
        /// V4L2_BUF_FLAG_ERROR: "data might have been corrupted".
        var isDamaged: Bool
    }

    /// VIDIOC_DQBUF; nil with the errno in `fault`.
    func dequeue(_ memory: Memory, _ fault: inout Int32) -> Filled? {
        var value = Self.buffer(0, memory)
        fault = quiet(fh_vidioc_dqbuf, &value)
        guard fault == 0 else { return nil }
        let flags = value.flags
        let isMonotonic =
            flags & UInt32(V4L2_BUF_FLAG_TIMESTAMP_MASK) == UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
        let seconds = Int64(value.timestamp.tv_sec)
        let microseconds = Int64(value.timestamp.tv_usec)
        // Less than 73 years, so that no arithmetic with it overflows (MediaTime).
        let isTime = (0...2_300_000_000).contains(seconds) && (0..<1_000_000).contains(microseconds)
        return Filled(
            index: Int(value.index), byteCount: Int(value.bytesused), sequence: value.sequence,
            time: isMonotonic && isTime ? seconds * 1_000_000_000 + microseconds * 1000 : nil,
            isDamaged: flags & UInt32(V4L2_BUF_FLAG_ERROR) != 0)
    }

    /// VIDIOC_STREAMON or VIDIOC_STREAMOFF.
    ///
    /// - Throws: ``CallFault``.
    func stream(_ isOn: Bool) throws(CallFault) {
        var type = Int32(bitPattern: Self.streamType)
        try call(
            isOn ? "VIDIOC_STREAMON" : "VIDIOC_STREAMOFF", isOn ? fh_vidioc_streamon : fh_vidioc_streamoff, &type)
    }

    // MARK: Controls

    /// VIDIOC_QUERYCTRL for all controls. Controls that are disabled, or whose value is not a single number, are left
    /// out.
    func controls() -> [CameraControl] {
        var found: [CameraControl] = []
        var id = UInt32(V4L2_CTRL_FLAG_NEXT_CTRL)
        for _ in 0..<Self.longestList {
            var value = v4l2_queryctrl()
            value.id = id
            guard quiet(fh_vidioc_queryctrl, &value) == 0 else { break }
            // A driver that returns the same control again would be asked forever.
            guard value.id & ~UInt32(V4L2_CTRL_FLAG_NEXT_CTRL) > id & ~UInt32(V4L2_CTRL_FLAG_NEXT_CTRL) || found.isEmpty
            else { break }
            id = value.id | UInt32(V4L2_CTRL_FLAG_NEXT_CTRL)
            if let control = control(&value) { found.append(control) }
        }
        return found
    }

    private func control(_ value: inout v4l2_queryctrl) -> CameraControl? {
        let kinds: [UInt32: CameraControl.Kind] = [
            V4L2_CTRL_TYPE_INTEGER.rawValue: .integer, V4L2_CTRL_TYPE_BOOLEAN.rawValue: .boolean,
            V4L2_CTRL_TYPE_MENU.rawValue: .menu, V4L2_CTRL_TYPE_INTEGER_MENU.rawValue: .menu,
            V4L2_CTRL_TYPE_BITMASK.rawValue: .integer,
        ]
        guard let kind = kinds[value.type], value.flags & UInt32(V4L2_CTRL_FLAG_DISABLED) == 0 else { return nil }
        let (least, most) = (Int(value.minimum), Int(value.maximum))
        guard least <= most else { return nil }
        return CameraControl(
            id: value.id, title: Self.text(of: &value.name), kind: kind, least: least, most: most,
            step: max(Int(value.step), 1), usual: Int(value.default_value),
            isReadOnly: value.flags & UInt32(V4L2_CTRL_FLAG_READ_ONLY) != 0,
            isInactive: value.flags & (UInt32(V4L2_CTRL_FLAG_INACTIVE) | UInt32(V4L2_CTRL_FLAG_GRABBED)) != 0,
            words: kind == .menu
                ? menu(value.id, least, most, isOfNumbers: value.type == V4L2_CTRL_TYPE_INTEGER_MENU.rawValue) : [])
    }

    /// VIDIOC_QUERYMENU.
    private func menu(_ id: UInt32, _ least: Int, _ most: Int, isOfNumbers: Bool) -> [CameraControl.Word] {
        guard least >= 0, most - least < Int(Self.longestList) else { return [] }
        return (least...most).compactMap { index in
            var value = v4l2_querymenu()
            value.id = id
            value.index = UInt32(index)
            guard quiet(fh_vidioc_querymenu, &value) == 0 else { return nil }
            guard !isOfNumbers else { return CameraControl.Word(value: index, name: "\(fh_menu_value(&value))") }
            // 32 bytes. The last is 0 unless the driver has a fault.
            let name = withUnsafePointer(to: &value) { pointer in
                UnsafeBufferPointer(start: fh_menu_name(pointer)!, count: 32).prefix { $0 != 0 }
                    .map { UInt8(bitPattern: $0) }
            }
            return CameraControl.Word(value: index, name: String(decoding: name, as: UTF8.self))
        }
    }

    /// Whether it makes keyframes on request: VIDIOC_QUERYCTRL of V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME.
    var makesKeyframes: Bool {
        var value = v4l2_queryctrl()
        value.id = fh_force_keyframe
        return quiet(fh_vidioc_queryctrl, &value) == 0 && value.flags & UInt32(V4L2_CTRL_FLAG_DISABLED) == 0
    }

    /// VIDIOC_S_CTRL. An error is ignored: a device that has gone also reports it at the next picture.
    func forceKeyframe() {
        var value = v4l2_control()
        value.id = fh_force_keyframe
        _ = quiet(fh_vidioc_s_ctrl, &value)
    }

    /// VIDIOC_G_CTRL.
    ///
    /// - Throws: ``CallFault``.
    func value(of control: CameraControl) throws(CallFault) -> Int {
        var value = v4l2_control()
        value.id = control.id
        try call("VIDIOC_G_CTRL", fh_vidioc_g_ctrl, &value)
        return Int(value.value)
    }

    /// VIDIOC_S_CTRL: reads back the value that the driver has set.
    ///
    /// - Throws: ``CallFault``.
    func set(_ control: CameraControl, to number: Int) throws(CallFault) -> Int {
        var value = v4l2_control()
        value.id = control.id
        value.value = Int32(clamping: number)
        try call("VIDIOC_S_CTRL", fh_vidioc_s_ctrl, &value)
        return (try? self.value(of: control)) ?? Int(value.value)
    }
}

extension V4L2Device {
    /// Whether the camera is there. A node may outlive its camera. A node that exists but may not be opened counts as
    /// there.
    static func isThere(_ path: String, _ calls: any DeviceCalls) -> Bool {
        do throws(CallFault) {
            _ = try V4L2Device(path: path, calls: calls)
            return true
        } catch {
            return !error.isLoss && error.errno != ENOENT
        }
    }
}
