// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Lets libavcodec decode into the chain's pool: the buffers it asks for are loans, and a finished picture goes on as a
/// share of its loan.
///
/// Where no buffer can be lent, libavcodec decodes into memory of the same layout outside the pool, and that picture is
/// copied. libavcodec asks for buffers and returns them on its own threads.
final class DecoderLoans {
    /// What the plan must reserve.
    let demand: DecoderDemand
    /// Pictures that had to be copied instead of shared. [stage thread]
    private(set) var copied = 0
    private(set) var shared = 0

    private let format: VideoFormat
    private let pixels: AVPixelFormat
    private let slots: UnsafeMutablePointer<Slot>
    /// Buffers outside the chain's pool.
    private var spares: OpaquePointer?
    // Set before the first packet, read by libavcodec's threads from then on.
    private var lender: BufferLender?
    private var layout = Layout()
    private var isSettled = false

    /// What libavcodec returns with a lent buffer.
    private struct Slot {
        let owner: Unmanaged<DecoderLoans>
        let loan: Int
    }

    /// Where the planes lie, counted from the first byte of the first plane.
    private struct Layout {
        var offsets: [Int] = []
        var strides: [Int] = []
        var byteCount = 0
    }

    /// [control thread]
    init(_ demand: DecoderDemand, format: VideoFormat, pixels: AVPixelFormat) {
        self.demand = demand
        self.format = format
        self.pixels = pixels
        slots = .allocate(capacity: demand.floor)
        for loan in 0..<demand.floor { (slots + loan).initialize(to: Slot(owner: .passUnretained(self), loan: loan)) }
    }

    /// The decoder and all its pictures are gone by then.
    deinit {
        av_buffer_pool_uninit(&spares)
        slots.deallocate()
    }

    /// [control thread] Makes the decoder, whose complaints name this object, take its buffers from here. The decoder must not
    /// outlive this object.
    func attach(to context: UnsafeMutablePointer<AVCodecContext>) {
        context.pointee.get_buffer2 = { context, picture, flags in
            guard let context, let picture, let complaints = context.pointee.opaque,
                let owner = fh_av_complaints_owner(OpaquePointer(complaints))
            else { return fh_averror_no_memory }
            let loans = Unmanaged<DecoderLoans>.fromOpaque(owner).takeUnretainedValue()
            return loans.provide(picture, context) ? 0 : avcodec_default_get_buffer2(context, picture, flags)
        }
        fh_av_allow_callbacks_from_threads(context)
    }

    /// [stage thread] Sets the lender of buffers, before the first packet. Later calls change nothing.
    func use(_ lender: BufferLender?) {
        // The stride is fixed here, since all pictures of a decoder have the same one.
        guard !isSettled else { return }
        isSettled = true
        guard let lender, let loan = lender.lend() else { return }
        let planes = (0..<format.pixelFormat.planeCount).map { lender.plane($0, of: loan) }
        layout.offsets = planes.map { $0.baseAddress - planes[0].baseAddress }
        layout.strides = planes.map(\.strideBytes)
        let last = planes.count - 1
        layout.byteCount =
            layout.offsets[last] + planes[last].strideBytes
            * format.pixelFormat.rows(plane: last, height: demand.height)
            + demand.padding.extraBytes
        lender.takeBack(loan)
        spares = av_buffer_pool_init(layout.byteCount, nil)
        self.lender = lender
    }

    // MARK: libavcodec's side

    /// [libavcodec's threads] Gives a picture its memory; false where libavcodec must allocate it: there is no
    /// lender, or the picture has another format or needs more room.
    private func provide(_ picture: UnsafeMutablePointer<AVFrame>, _ context: UnsafeMutablePointer<AVCodecContext>)
        -> Bool
    {
        guard let lender, picture.pointee.format == pixels.rawValue, demand.hasRoom(for: picture, context) else {
            return false
        }
        if let loan = lender.lend() {
            let first = lender.plane(0, of: loan).baseAddress
            if let buffer = av_buffer_create(first, layout.byteCount, Self.giveBack, slots + loan, 0) {
                fh_av_use_buffer(picture, buffer, planes(at: first))
                return true
            }
            lender.takeBack(loan)
        }
        // The spare has the same layout, since decoders assume that reference pictures have the same stride.
        guard let buffer = av_buffer_pool_get(spares) else { return false }
        fh_av_use_buffer(picture, buffer, planes(at: buffer.pointee.data))
        return true
    }

    private static let giveBack: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutablePointer<UInt8>?) -> Void = {
        opaque, _ in
        guard let slot = opaque?.assumingMemoryBound(to: Slot.self).pointee else { return }
        slot.owner.takeUnretainedValue().lender?.takeBack(slot.loan)
    }

    private func planes(at first: UnsafeMutablePointer<UInt8>) -> fh_av_planes {
        var planes = fh_av_no_planes()
        for index in layout.offsets.indices {
            fh_av_add_plane(&planes, Int32(index), first + layout.offsets[index], layout.strides[index])
        }
        return planes
    }

    // MARK: The chain's side

    /// [stage thread] The picture as a frame of the pool, if it starts at the first byte of a loan; nil where it
    /// must be copied.
    func frame(of picture: DecodedPicture) -> Frame? {
        guard let lender, let buffer = picture.frame.pointee.buf.0, let opaque = av_buffer_get_opaque(buffer) else {
            return declined()
        }
        let slot = opaque.assumingMemoryBound(to: Slot.self)
        guard slot >= slots, slot < slots + demand.floor, picture.frame.pointee.data.0 == buffer.pointee.data else {
            return declined()
        }
        shared += 1
        return lender.share(slot.pointee.loan)
    }

    private func declined() -> Frame? {
        copied += 1
        return nil
    }
}
