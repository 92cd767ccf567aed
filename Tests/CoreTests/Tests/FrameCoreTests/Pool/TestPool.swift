// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// Pools and slabs for tests, with a stop of their own.
struct TestPool {
    let stop = StopSignal()
    let clock = ManualClock(at: 1_000_000_000)
    let pool: FramePool

    init(
        _ count: Int, _ format: VideoFormat = VideoFormat(.gray8, width: 16, height: 8), touching: Int? = nil,
        leasesPerBuffer: Int = 4,
        metadata: MetadataLayout = .none
    ) throws {
        pool = try FramePool(
            name: "pool", format: format, bufferCount: count, touching: touching, leasesPerBuffer: leasesPerBuffer,
            metadata: metadata,
            stop: stop,
            clock: clock)
    }
}
