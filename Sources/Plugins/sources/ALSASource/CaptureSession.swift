// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// An open device with what belongs to its format: memory for one period, the loop and the resampler. [stage thread]
final class CaptureSession {
    let device: any SoundCard
    let resampler: DriftResampler
    /// Its times are seconds of the timeline.
    var loop: DelayLockedLoop
    /// Interleaved samples of one period, as the card writes them.
    let bytes: UnsafeMutableRawBufferPointer
    /// Frames in ``bytes`` that are to be given.
    var pending = 0
    /// Frames of the card to leave out, because their time has been given.
    var excess = 0
    var isSuspended = false

    var card: CardFormat { device.format }

    /// [setup thread, stage thread] Begins to capture.
    ///
    /// - Throws: ``CardFault`` or ``FrameHostError``.
    init(_ device: any SoundCard, format: AudioFormat) throws {
        self.device = device
        let card = device.format
        resampler = try DriftResampler(card, to: format, mostFrames: card.period)
        loop = DelayLockedLoop(rate: card.rate)
        bytes = .allocate(byteCount: card.period * card.frameBytes, alignment: 16)
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
        try device.start()
    }

    deinit { bytes.deallocate() }

    /// Forgets what the card has captured, and starts it again.
    func restart() throws(CardFault) {
        device.close()
        pending = 0
        try device.start()
    }
}
