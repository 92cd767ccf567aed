// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The buffers that a driver fills: loans of the chain's pool where it can write there, or else its own, mapped.
///
/// Belongs to the stage thread. After ``stop()`` the driver writes nowhere.
final class CaptureQueue {
    /// A picture that the driver has finished; valid until it is given back.
    struct Picture {
        let filled: V4L2Device.Filled
        /// The picture's bytes in the driver's own memory; nil for a loan.
        let bytes: UnsafeRawBufferPointer?
    }

    private let device: V4L2Device
    private let layout: DriverLayout
    /// The most buffers that the driver has at once.
    private let depth: Int
    private(set) var isLent = false
    private var lender: BufferLender?
    private var mappings: [UnsafeMutableRawBufferPointer] = []
    /// For each buffer number, whether the driver has that buffer.
    private var isQueued: [Bool] = []
    /// The loan under each number, and the last address there: the kernel keeps the pages of a number that comes with
    /// the same memory again.
    private var loans: [Int?] = []
    private var places: [UnsafeMutableRawPointer?] = []
    private(set) var queuedCount = 0
    /// QBUF calls in a row that the driver refused.
    private var refusals = 0
    private var hasStopped = false

    /// How many numbers are requested for loans: more than a pool usually has buffers, so that each buffer keeps its
    /// number.
    private static let lentNumbers = 32
    private static let mostRefusals = 64

    /// [stage thread] Requests buffers, hands them over and starts the stream.
    ///
    /// - Parameters:
    ///   - lender: Nil where the driver must not write into the chain's buffers.
    /// - Throws: ``CallFault``.
    init(_ device: V4L2Device, _ layout: DriverLayout, depth: Int, lender: BufferLender?) throws(CallFault) {
        self.device = device
        self.layout = layout
        self.depth = depth
        do throws(CallFault) {
            if let lender, Self.fits(layout, lender) { beginLent(lender) }
            if !isLent { try beginMapped() }
            try device.stream(true)
        } catch {
            stop()
            throw error
        }
    }

    deinit { stop() }

    private static func fits(_ layout: DriverLayout, _ lender: BufferLender) -> Bool {
        guard layout.fits(lender.format), layout.imageBytes <= lender.bufferBytes, let loan = lender.lend() else {
            return false
        }
        defer { lender.takeBack(loan) }
        let first = lender.plane(0, of: loan).baseAddress
        return layout.planes.indices.allSatisfy {
            let plane = lender.plane($0, of: loan)
            return plane.baseAddress - first == layout.planes[$0].offset
                && plane.strideBytes == layout.planes[$0].strideBytes
        }
    }

    /// Begins with loans. Drivers that cannot write into a program's memory report it here or at the first buffer
    /// (V4L2, "Streaming I/O (User Pointers)"), before anything is lost.
    private func beginLent(_ lender: BufferLender) {
        guard let count = try? device.requestBuffers(Self.lentNumbers, .lent).count, count >= 2 else { return }
        self.lender = lender
        reset(min(count, 64))
        isLent = true
        try? refill()
        guard queuedCount == 0 else { return }
        isLent = false
        self.lender = nil
        _ = try? device.requestBuffers(0, .lent)
    }

    private func beginMapped() throws(CallFault) {
        let count = try device.requestBuffers(depth, .mapped).count
        guard (1...64).contains(count) else { throw CallFault(call: "VIDIOC_REQBUFS", errno: ENOMEM) }
        reset(count)
        for index in 0..<count {
            let mapping = try device.map(index)
            mappings.append(mapping)
            guard mapping.count >= layout.leastBytes else { throw CallFault(call: "VIDIOC_QUERYBUF", errno: ENOSPC) }
        }
        for index in 0..<count {
            let fault = device.enqueue(index)
            if fault != 0 { throw CallFault(call: "VIDIOC_QBUF", errno: fault) }
            isQueued[index] = true
            queuedCount += 1
        }
    }

    private func reset(_ count: Int) {
        isQueued = Array(repeating: false, count: count)
        loans = Array(repeating: nil, count: count)
        places = Array(repeating: nil, count: count)
    }

    // MARK: One picture

    /// [stage thread] Lends the driver the buffers that it lacks, fewer where none are free. Where it uses its own
    /// buffers, queues those that it refused before.
    ///
    /// - Throws: ``CallFault`` when the driver has refused too often.
    func refill() throws(CallFault) {
        if refusals > Self.mostRefusals { throw CallFault(call: "VIDIOC_QBUF", errno: EIO) }
        guard isLent, let lender else { return enqueueMapped() }
        while queuedCount < min(depth, isQueued.count), let loan = lender.lend() {
            let base = UnsafeMutableRawPointer(lender.plane(0, of: loan).baseAddress)
            guard let index = number(for: base),
                device.enqueue(index, UnsafeMutableRawBufferPointer(start: base, count: lender.bufferBytes)) == 0
            else {
                lender.takeBack(loan)
                refusals += 1
                return
            }
            refusals = 0
            places[index] = base
            loans[index] = loan
            isQueued[index] = true
            queuedCount += 1
        }
    }

    /// The number under which the driver knows this memory already, or else an unused one, or else any.
    private func number(for base: UnsafeMutableRawPointer) -> Int? {
        var free: Int?
        var unused: Int?
        for index in isQueued.indices where !isQueued[index] {
            if places[index] == base { return index }
            if places[index] == nil { unused = unused ?? index } else { free = free ?? index }
        }
        return unused ?? free
    }

    /// [stage thread] Waits for a picture; nil when none came in this time.
    ///
    /// - Throws: ``CallFault``.
    func next(milliseconds: Int32) throws(CallFault) -> Picture? {
        let events = device.calls.wait(device.descriptor, milliseconds: milliseconds)
        if events == 0 || events == -EINTR { return nil }
        if events < 0 { throw CallFault(call: "poll", errno: -events) }
        var fault: Int32 = 0
        // Also after POLLERR: VIDIOC_DQBUF tells the reason.
        guard let filled = device.dequeue(isLent ? .lent : .mapped, &fault) else {
            // videobuf2 reports POLLERR, and EINVAL, while it has no buffer.
            if fault == EAGAIN || (fault == EINVAL && queuedCount == 0) { return nil }
            throw CallFault(call: "VIDIOC_DQBUF", errno: fault)
        }
        guard isQueued.indices.contains(filled.index), isQueued[filled.index] else {
            throw CallFault(call: "VIDIOC_DQBUF", errno: EPROTO)
        }
        isQueued[filled.index] = false
        queuedCount -= 1
        guard !isLent else { return Picture(filled: filled, bytes: nil) }
        let mapping = mappings[filled.index]
        return Picture(
            filled: filled,
            bytes: UnsafeRawBufferPointer(start: mapping.baseAddress, count: min(filled.byteCount, mapping.count)))
    }

    /// [stage thread] The picture as a frame of the chain that no other stage holds. Only for a loan, and once.
    func frame(of picture: Picture) -> Frame? {
        guard let lender, let loan = loans[picture.filled.index] else { return nil }
        loans[picture.filled.index] = nil
        let frame = lender.share(loan)
        lender.takeBack(loan)
        return frame
    }

    /// [stage thread] Gives the buffer of a picture back to the driver.
    func giveBack(_ picture: Picture) {
        let index = picture.filled.index
        guard !isLent else {
            if let loan = loans[index] {
                loans[index] = nil
                lender?.takeBack(loan)
            }
            return
        }
        enqueueMapped()
    }

    /// Queues all buffers that the driver does not have. Some drivers refuse a buffer once, and so do injected faults.
    /// The others go on, and the refused one is tried again with the next picture, or before it where the driver has
    /// none.
    private func enqueueMapped() {
        for index in isQueued.indices where !isQueued[index] {
            guard device.enqueue(index) == 0 else {
                refusals += 1
                continue
            }
            refusals = 0
            isQueued[index] = true
            queuedCount += 1
        }
    }

    /// [stage thread] Ends the stream. A device that has gone refuses these calls; its last use ends with the
    /// descriptor, and the driver writes nowhere afterwards.
    func stop() {
        guard !hasStopped else { return }
        hasStopped = true
        let isEnded = (try? device.stream(false)) != nil
        for mapping in mappings { device.calls.unmap(mapping.baseAddress!, byteCount: mapping.count) }
        mappings = []
        let isFreed = (try? device.requestBuffers(0, isLent ? .lent : .mapped)) != nil
        if !isEnded || !isFreed { device.close() }
        for index in loans.indices {
            if let loan = loans[index] { lender?.takeBack(loan) }
            loans[index] = nil
        }
        isQueued = []
        queuedCount = 0
    }
}
