// SPDX-License-Identifier: Apache-2.0

/// Makes the pools and slabs around a stage that a ``StageDriver`` drives.
struct DriverMemory {
    let layout: MetadataLayout
    let stop: StopSignal
    let clock: ChainClock
    /// Memory of an input's slab; that behind the stage is twice as large.
    let slabBytes: Int

    func pool(
        _ name: String, _ format: VideoFormat, padding: BufferPadding = BufferPadding(), count: Int
    ) throws -> FramePool {
        try FramePool(
            name: name, format: format, padding: padding, bufferCount: count, leasesPerBuffer: 8, metadata: layout,
            stop: stop, clock: clock)
    }

    /// Nil for a format that lies in no slab.
    func slab(_ name: String, _ format: MediaFormat, byteCount: Int? = nil, unitCount: Int) throws -> Slab? {
        guard format.liesInSlab else { return nil }
        return try Slab(
            name: name, byteCount: byteCount ?? slabBytes, unitCount: unitCount, content: Slab.Content(format),
            metadata: layout, stop: stop)
    }

    /// Gives a stage's output its pool, lender and slab.
    func equip(_ output: Output, _ format: MediaFormat?, _ demand: StageDemand) throws {
        if demand.outputBuffers == .own, let video = format?.video {
            output.pool = try pool("output", video, padding: demand.padding, count: 32)
        }
        output.lender = output.pool.map { BufferLender(pool: $0, count: demand.floor, holderCode: 0) }
        output.slab = try format.flatMap { try slab("output", $0, byteCount: 2 * slabBytes, unitCount: 1024) }
    }
}
