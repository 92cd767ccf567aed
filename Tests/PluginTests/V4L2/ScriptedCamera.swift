// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore
import Glibc

@testable import V4L2Source

/// A V4L2 driver that a test scripts: what it offers, what it answers, and which call fails next with which errno.
///
/// Pictures have their sequence number's low byte in every sample. Used by one thread at a time.
final class ScriptedCamera: DeviceCalls, @unchecked Sendable {
    struct Offer {
        var code: String
        var sizes: [(width: UInt32, height: UInt32)]
        /// Numerator and denominator, seconds.
        var intervals: [(UInt32, UInt32)]
    }

    struct Control {
        var id: UInt32
        var title: String
        var type = V4L2_CTRL_TYPE_INTEGER
        var least: Int32 = 0
        var most: Int32 = 255
        var step: Int32 = 1
        var usual: Int32 = 128
        var flags: Int32 = 0
        var words: [String] = []
        var value: Int32 = 128
    }

    // What it is.
    var nodes = ["/dev/video0"]
    var links: [String: String] = [:]
    var files: [String: String] = [:]
    var card = "Scripted"
    var capabilities = UInt32(V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
    var offers = [Offer(code: "YUYV", sizes: [(64, 32)], intervals: [(1, 25)])]
    var controls: [Control] = []
    /// Bytes that are added to each row.
    var rowPadding: UInt32 = 0
    var takesOurs = true
    /// Changes what a format call answers.
    var spoil: (inout v4l2_pix_format) -> Void = { _ in }
    /// Changes what a dequeue answers.
    var spoilBuffer: (inout v4l2_buffer) -> Void = { _ in }
    /// The interval it sets whatever is asked.
    var fixedInterval: (UInt32, UInt32)?
    /// The content of a compressed picture.
    var compressed: [UInt8] = []
    /// The same by the picture's number, where they differ.
    var compressedAt: ((UInt32) -> [UInt8])?
    /// Times that a keyframe was asked for, where it makes one.
    var keyframesAsked = 0
    var makesKeyframes = false

    // What happens.
    /// Errnos of the next calls of a request, first to last.
    var faults: [UInt: [Int32]] = [:]
    var openFaults: [Int32] = []
    /// Every call from here on fails with it.
    var isGone: Int32?
    /// No picture comes.
    var isStalled = false
    /// How long the driver keeps each call for a picture, where somebody lets it wait.
    var dequeueMicroseconds: UInt32 = 0
    /// Processors that the process may use.
    var processors = 2
    /// When pictures are taken, nanoseconds.
    var clock: ChainClock = ManualClock()
    var sequence: UInt32 = 0
    /// Left out before the next picture.
    var gap: UInt32 = 0

    // What was seen.
    private(set) var opened = 0
    private(set) var closed = 0
    private(set) var seen: [UInt] = []
    private(set) var mapped = 0
    private(set) var unmapped = 0
    private(set) var isStreaming = false
    private(set) var format = v4l2_pix_format()
    private(set) var interval: (UInt32, UInt32) = (1, 5)

    private var memory = V4L2_MEMORY_MMAP.rawValue
    private var buffers: [UnsafeMutableRawPointer?] = []
    private var own: Set<UnsafeMutableRawPointer> = []
    private(set) var queued: [UInt32] = []

    deinit { for base in own { base.deallocate() } }

    // MARK: DeviceCalls

    func open(_ path: String) -> Int32 {
        if !openFaults.isEmpty { return -openFaults.removeFirst() }
        guard isGone == nil, nodes.contains(realPath(path) ?? path) else { return -(isGone ?? ENOENT) }
        opened += 1
        return 100
    }

    func close(_ device: Int32) {
        closed += 1
        forget()
    }

    private func forget() {
        queued = []
        isStreaming = false
        buffers = []
    }

    func map(_ device: Int32, byteCount: Int, offset: Int) -> UnsafeMutableRawPointer? {
        mapped += 1
        return buffers[offset >> 24]
    }

    /// Gone for good: the address sanitizer finds whoever reads there.
    func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int) {
        unmapped += 1
        if own.remove(base) != nil { base.deallocate() }
    }

    /// As a camera does at any moment, whoever reads there meanwhile.
    func writeIntoWhatItHas() {
        guard isGone == nil, isStreaming else { return }
        for index in queued { if let base = buffers[Int(index)] { memset(base, 0xEE, Int(format.sizeimage)) } }
    }

    func wait(_ device: Int32, milliseconds: Int32) -> Int32 {
        if isGone != nil { return POLLERR | POLLHUP }
        return isStalled || queued.isEmpty ? 0 : Int32(POLLIN)
    }

    func control(_ device: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        seen.append(request)
        if let isGone { return isGone }
        if var list = faults[request], !list.isEmpty {
            let fault = list.removeFirst()
            faults[request] = list
            if fault != 0 { return fault }
        }
        switch request {
        case fh_vidioc_querycap:
            let value = argument.assumingMemoryBound(to: v4l2_capability.self)
            put(card, into: &value.pointee.card)
            put("scripted", into: &value.pointee.driver)
            value.pointee.capabilities = capabilities
        case fh_vidioc_enum_fmt: return enumerate(argument.assumingMemoryBound(to: v4l2_fmtdesc.self))
        case fh_vidioc_enum_framesizes: return enumerate(argument.assumingMemoryBound(to: v4l2_frmsizeenum.self))
        case fh_vidioc_enum_frameintervals: return enumerate(argument.assumingMemoryBound(to: v4l2_frmivalenum.self))
        case fh_vidioc_try_fmt, fh_vidioc_s_fmt:
            answer(&argument.assumingMemoryBound(to: v4l2_format.self).pointee.fmt.pix)
            if request == fh_vidioc_s_fmt {
                format = argument.assumingMemoryBound(to: v4l2_format.self).pointee.fmt.pix
            }
        case fh_vidioc_s_parm:
            let value = argument.assumingMemoryBound(to: v4l2_streamparm.self)
            if let fixedInterval {
                value.pointee.parm.capture.timeperframe = v4l2_fract(
                    numerator: fixedInterval.0, denominator: fixedInterval.1)
            }
            let set = value.pointee.parm.capture.timeperframe
            interval = (set.numerator, set.denominator)
        case fh_vidioc_reqbufs: return lend(argument.assumingMemoryBound(to: v4l2_requestbuffers.self))
        case fh_vidioc_querybuf:
            let value = argument.assumingMemoryBound(to: v4l2_buffer.self)
            value.pointee.length = format.sizeimage
            value.pointee.m.offset = value.pointee.index << 24
        case fh_vidioc_qbuf: return enqueue(argument.assumingMemoryBound(to: v4l2_buffer.self))
        case fh_vidioc_dqbuf: return dequeue(argument.assumingMemoryBound(to: v4l2_buffer.self))
        case fh_vidioc_streamon: isStreaming = true
        case fh_vidioc_streamoff:
            isStreaming = false
            queued = []
        case fh_vidioc_queryctrl, fh_vidioc_querymenu, fh_vidioc_g_ctrl, fh_vidioc_s_ctrl:
            return control(request, argument)
        default: return ENOTTY
        }
        return 0
    }

    // MARK: Offers

    private func put<Field>(_ text: String, into field: inout Field) {
        withUnsafeMutableBytes(of: &field) { bytes in
            for (index, byte) in text.utf8.prefix(bytes.count).enumerated() { bytes[index] = byte }
        }
    }

    private func code(_ text: String) -> UInt32 {
        text.utf8.enumerated().reduce(0) { $0 | UInt32($1.element) << UInt32(8 * $1.offset) }
    }

    private func enumerate(_ value: UnsafeMutablePointer<v4l2_fmtdesc>) -> Int32 {
        let index = Int(value.pointee.index)
        guard index < offers.count else { return EINVAL }
        value.pointee.pixelformat = code(offers[index].code)
        put("a format", into: &value.pointee.description)
        return 0
    }

    private func enumerate(_ value: UnsafeMutablePointer<v4l2_frmsizeenum>) -> Int32 {
        let index = Int(value.pointee.index)
        guard let offer = offers.first(where: { code($0.code) == value.pointee.pixel_format }),
            index < offer.sizes.count
        else { return EINVAL }
        value.pointee.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
        value.pointee.discrete = v4l2_frmsize_discrete(
            width: offer.sizes[index].width, height: offer.sizes[index].height)
        return 0
    }

    private func enumerate(_ value: UnsafeMutablePointer<v4l2_frmivalenum>) -> Int32 {
        let index = Int(value.pointee.index)
        guard let offer = offers.first(where: { code($0.code) == value.pointee.pixel_format }),
            index < offer.intervals.count
        else { return EINVAL }
        value.pointee.type = V4L2_FRMIVAL_TYPE_DISCRETE.rawValue
        value.pointee.discrete = v4l2_fract(
            numerator: offer.intervals[index].0, denominator: offer.intervals[index].1)
        return 0
    }

    /// A format it does not have becomes its first, as vivid does.
    private func answer(_ pix: inout v4l2_pix_format) {
        let offer = offers.first { code($0.code) == pix.pixelformat } ?? offers[0]
        pix.pixelformat = code(offer.code)
        let (width, height) = (pix.width, pix.height)
        if !offer.sizes.contains(where: { $0.width == width && $0.height == height }) {
            (pix.width, pix.height) = (offer.sizes[0].width, offer.sizes[0].height)
        }
        pix.field = V4L2_FIELD_NONE.rawValue
        pix.colorspace = V4L2_COLORSPACE_SRGB.rawValue
        switch offer.code {
        case "YUYV":
            pix.bytesperline = pix.width * 2 + rowPadding
            pix.sizeimage = pix.bytesperline * pix.height
        case "NV12", "YU12":
            pix.bytesperline = pix.width + rowPadding
            pix.sizeimage = pix.bytesperline * pix.height * 3 / 2
        default:
            pix.bytesperline = 0
            pix.sizeimage = pix.width * pix.height * 2
        }
        spoil(&pix)
    }

    // MARK: Buffers

    private func lend(_ value: UnsafeMutablePointer<v4l2_requestbuffers>) -> Int32 {
        value.pointee.capabilities = UInt32(
            V4L2_BUF_CAP_SUPPORTS_MMAP | (takesOurs ? V4L2_BUF_CAP_SUPPORTS_USERPTR : 0))
        forget()
        guard value.pointee.count > 0 else { return 0 }
        memory = value.pointee.memory
        if memory == V4L2_MEMORY_USERPTR.rawValue {
            guard takesOurs else { return EINVAL }
            buffers = Array(repeating: nil, count: Int(value.pointee.count))
        } else {
            let bytes = max(Int(format.sizeimage), 1)
            buffers = (0..<Int(value.pointee.count)).map { _ in
                let base = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 64)
                own.insert(base)
                return base
            }
        }
        return 0
    }

    private func enqueue(_ value: UnsafeMutablePointer<v4l2_buffer>) -> Int32 {
        guard buffers.indices.contains(Int(value.pointee.index)), !queued.contains(value.pointee.index) else {
            return EINVAL
        }
        if memory == V4L2_MEMORY_USERPTR.rawValue {
            guard value.pointee.length >= format.sizeimage else { return EINVAL }
            buffers[Int(value.pointee.index)] = UnsafeMutableRawPointer(bitPattern: value.pointee.m.userptr)
        }
        queued.append(value.pointee.index)
        return 0
    }

    private func dequeue(_ value: UnsafeMutablePointer<v4l2_buffer>) -> Int32 {
        guard isStreaming, let index = queued.first else { return EAGAIN }
        queued.removeFirst()
        sequence += gap
        if let clock = clock as? ManualClock { clock.advance(to: clock.now() + Int64(gap) * 40_000_000) }
        gap = 0
        let base = buffers[Int(index)]!
        let compressed = compressedAt?(sequence) ?? compressed
        if compressed.isEmpty, compressedAt == nil {
            memset(base, Int32(sequence & 0xFF), Int(format.sizeimage))
            value.pointee.bytesused = format.sizeimage
        } else {
            compressed.withUnsafeBytes { bytes in
                if let first = bytes.baseAddress { base.copyMemory(from: first, byteCount: bytes.count) }
            }
            value.pointee.bytesused = UInt32(compressed.count)
        }
        value.pointee.index = index
        value.pointee.sequence = sequence
        value.pointee.flags = UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
        if let clock = clock as? ManualClock { clock.advance(to: clock.now() + 40_000_000) }
        let now = clock.now()
        value.pointee.timestamp = timeval(tv_sec: Int(now / 1_000_000_000), tv_usec: Int(now % 1_000_000_000 / 1000))
        sequence += 1
        spoilBuffer(&value.pointee)
        return 0
    }

    // MARK: Controls

    private func control(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        // A button: without a value, and not among those that are listed here.
        let id = argument.assumingMemoryBound(to: UInt32.self).pointee
        if id == fh_force_keyframe, request == fh_vidioc_queryctrl || request == fh_vidioc_s_ctrl {
            if request == fh_vidioc_s_ctrl, makesKeyframes { keyframesAsked += 1 }
            return makesKeyframes ? 0 : EINVAL
        }
        switch request {
        case fh_vidioc_queryctrl:
            let value = argument.assumingMemoryBound(to: v4l2_queryctrl.self)
            let after = value.pointee.id & ~UInt32(V4L2_CTRL_FLAG_NEXT_CTRL)
            guard let control = controls.first(where: { $0.id > after }) else { return EINVAL }
            value.pointee.id = control.id
            value.pointee.type = control.type.rawValue
            put(control.title, into: &value.pointee.name)
            (value.pointee.minimum, value.pointee.maximum) = (control.least, control.most)
            (value.pointee.step, value.pointee.default_value) = (control.step, control.usual)
            value.pointee.flags = UInt32(bitPattern: control.flags)
        case fh_vidioc_querymenu:
            let value = argument.assumingMemoryBound(to: v4l2_querymenu.self)
            guard let control = controls.first(where: { $0.id == value.pointee.id }),
                control.words.indices.contains(Int(value.pointee.index)),
                !control.words[Int(value.pointee.index)].isEmpty
            else { return EINVAL }
            put(control.words[Int(value.pointee.index)], into: &value.pointee.name)
        default:
            let value = argument.assumingMemoryBound(to: v4l2_control.self)
            guard let index = controls.firstIndex(where: { $0.id == value.pointee.id }) else { return EINVAL }
            if request == fh_vidioc_s_ctrl {
                let asked = value.pointee.value
                controls[index].value = asked - asked % max(controls[index].step, 1)
            }
            value.pointee.value = controls[index].value
        }
        return 0
    }

    // MARK: Files

    func names(in folder: String) -> [String] {
        if folder == "/dev" { return nodes.map { String($0.dropFirst("/dev/".count)) } }
        let all = Array(links.keys) + Array(files.keys)
        return Set(
            all.compactMap { path -> String? in
                guard path.hasPrefix("\(folder)/") else { return nil }
                return path.dropFirst(folder.count + 1).split(separator: "/").first.map(String.init)
            }
        ).sorted()
    }

    func realPath(_ path: String) -> String? { links[path] ?? (nodes.contains(path) ? path : nil) }
    func link(_ path: String) -> String? { links[path] }
    func text(of file: String) -> String? { files[file] }
    func group(of path: String) -> String? { "video" }
}
