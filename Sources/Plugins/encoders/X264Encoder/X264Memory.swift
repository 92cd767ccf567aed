// SPDX-License-Identifier: Apache-2.0

import CX264

/// The memory that x264 takes for its pictures, computed as it allocates them (x264_frame_new in frame.c,
/// x264_macroblock_thread_allocate and x264_encoder_open): a part that grows with the picture, times the number of
/// pictures at once.
struct X264Memory {
    /// Bytes of a picture's luma plane with the room around it.
    private let luma: Int
    /// Of 16x16 pixels.
    private let macroblocks: Int
    private let parameters: x264_param_t
    private let mostDelay: Int

    /// Around a picture (PADH, PADV), pixels.
    private static let padding = 32
    /// Rows begin at multiples of it, and one cache line apart from those of other planes.
    private static let alignment = 64

    /// - Parameters:
    ///   - parameters: The parameters of the open encoder.
    ///   - mostDelay: `x264_encoder_maximum_delayed_frames`.
    init(_ parameters: x264_param_t, mostDelay: Int) {
        self.parameters = parameters
        self.mostDelay = mostDelay
        let (across, down) = ((Int(parameters.i_width) + 15) / 16, (Int(parameters.i_height) + 15) / 16)
        macroblocks = across * down
        let stride = (across * 16 + 2 * Self.padding + Self.alignment - 1) / Self.alignment * Self.alignment
        luma = stride * (down * 16 + 2 * Self.padding)
    }

    private var bframes: Int { Int(parameters.i_bframe) }
    private var threads: Int { max(Int(parameters.i_threads), 1) }
    /// Pictures encoded at once.
    private var frameThreads: Int { parameters.b_sliced_threads == 0 ? threads : 1 }

    /// Whether pictures wait for the lookahead, which uses small copies of them (`frames.b_have_lowres`).
    private var looksAhead: Bool { parameters.rc.i_lookahead > 0 || bframes > 0 || parameters.i_scenecut_threshold > 0 }

    /// A picture that came in: its planes, four small ones, and for each macroblock what was found in them.
    private var inputBytes: Int {
        let planes = luma * 3 / 2
        guard looksAhead else { return planes }
        let distances = bframes + 1
        // Vectors and their costs for each distance and direction, costs of each pair of distances; what quantisers
        // are derived from.
        let vectors = 8 * distances * (bframes > 0 ? 2 : 1)
        let costs = 2 * (bframes + 2) * (bframes + 2)
        return planes + luma + macroblocks * (vectors + costs + 24)
    }

    /// A picture that others refer to: three more planes of half pixels, and for each macroblock vectors and types.
    private var referenceBytes: Int {
        let planes = parameters.analyse.i_subpel_refine > 0 ? luma * 9 / 2 : luma * 3 / 2
        return planes + macroblocks * 152
    }

    /// For each thread: rows being worked on, tables, and the written part of its bit stream's room.
    private var threadBytes: Int { (1 << 20) + luma }

    /// An estimate: as measured, x264 takes from three quarters of it to 1.3 times as much (OwnMemoryTests).
    var byteCount: Int {
        // One more picture that comes in, and one that was just given.
        let inputs = mostDelay + frameThreads + 2
        let references = max(Int(parameters.i_frame_reference), 1) + frameThreads + 1
        return inputs * inputBytes + references * referenceBytes + (threads + 1) * threadBytes
    }
}
