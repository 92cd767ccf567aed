// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Makes whole pictures of interlaced ones with libavfilter's bwdif, one for one; the only place that calls
/// libavfilter.
///
/// Pictures that the file does not mark as interlaced pass unchanged. The filter needs the picture that follows, so
/// it answers one picture late. Used by one thread at a time.
final class Deinterlacer {
    private var filter: OpaquePointer?
    private var size: (width: Int32, height: Int32, format: Int32) = (0, 0, 0)
    private let timeBase: TimeBase
    /// The first picture of another size, kept while those before it are taken out.
    private var next: UnsafeMutablePointer<AVFrame>?
    private var hasNext = false

    /// [control thread] Loads libavfilter.
    ///
    /// - Throws: ``FrameHostError`` that names the Debian package.
    init(timeBase: TimeBase) throws {
        self.timeBase = timeBase
        var loaded: Int32 = 0
        let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            loaded = fh_av_filter_load(buffer.baseAddress!, buffer.count)
            return loaded < 0 ? String(cString: buffer.baseAddress!) : ""
        }
        guard loaded >= 0 else { throw FileFault.noFilterLibrary(String(cString: fh_av_filter_library()), cause: text) }
        next = av_frame_alloc()
        guard next != nil else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a deinterlacer",
                remedy: "Free some memory, and start the chain again.")
        }
    }

    deinit {
        av_frame_free(&next)
        fh_av_filter_close(&filter)
    }

    /// [stage thread] Takes over a picture, whose frame is then empty. Call it only after `receive` has returned
    /// false.
    func send(_ picture: DecodedPicture) throws {
        if filter != nil, isNew(picture) {
            av_frame_move_ref(next, picture.frame)
            hasNext = true
            end()
        } else {
            try push(picture)
        }
    }

    /// [stage thread] Takes the next picture that is ready; false when there is none.
    func receive(into picture: UnsafeMutablePointer<AVFrame>) throws -> Bool {
        if filter != nil, fh_av_filter_receive(filter, picture) >= 0 { return true }
        guard hasNext else { return false }
        hasNext = false
        fh_av_filter_close(&filter)
        try push(DecodedPicture(frame: next!))
        return fh_av_filter_receive(filter, picture) >= 0
    }

    /// [stage thread] Says that no picture follows, so that the last one can be taken out.
    func end() { if filter != nil { _ = fh_av_filter_send(filter, nil) } }

    /// [stage thread] Drops what it holds.
    func reset() {
        fh_av_filter_close(&filter)
        if hasNext { av_frame_unref(next) }
        hasNext = false
    }

    private func isNew(_ picture: DecodedPicture) -> Bool {
        let frame = picture.frame.pointee
        return frame.width != size.width || frame.height != size.height || frame.format != size.format
    }

    private func push(_ picture: DecodedPicture) throws {
        if filter == nil { try open(picture) }
        picture.frame.pointee.pts = picture.frame.pointee.best_effort_timestamp
        let result = fh_av_filter_send(filter, picture.frame)
        guard result >= 0 else { throw failure(result) }
    }

    private func open(_ picture: DecodedPicture) throws {
        let frame = picture.frame.pointee
        size = (frame.width, frame.height, frame.format)
        // Formats that the filter cannot handle are converted before it, and back after it.
        let name = PixelConversion(picture.pixelFormat).name
        let result = fh_av_filter_open(
            &filter, "bwdif=mode=send_frame:parity=auto:deint=interlaced,format=\(name)", frame.width, frame.height,
            frame.format,
            AVRational(num: timeBase.numerator, den: timeBase.denominator), frame.sample_aspect_ratio)
        guard result >= 0 else { throw failure(result) }
    }

    private func failure(_ code: Int32) -> FrameHostError {
        FrameHostError(
            .callFailed, what: "pictures of \(size.width)x\(size.height) cannot be deinterlaced: \(LibavText.of(code))",
            remedy: "Leave out 'deinterlace'.", option: "deinterlace")
    }
}
