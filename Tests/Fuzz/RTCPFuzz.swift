// SPDX-License-Identifier: Apache-2.0

/// Feeds any bytes to the reader of RTCP, and as an access unit to the packetizer, whose packets must fit what it
/// planned.
func fuzzRTCP(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: bytes, count: count)
    if let packets = RTCP.parse(Array(input)) {
        let written = packets.filter { if case .other = $0 { false } else { true } }
        precondition(RTCP.parse(RTCP.bytes(written)) == written, "other packets came back")
    }
    _ = RTPHeader(Array(input))
    var packetizer = NALPacketizer(
        NALPacketizer.Sets(sps: [0x67, 1, 2, 3], pps: [0x68, 1]), mostPacketBytes: 64, payloadType: 96, ssrc: 1,
        firstSequenceNumber: 0xfff0
    )
    var extents: [NALPacketizer.Extent] = []
    for isKeyframe in [false, true] {
        let plan = packetizer.plan(input, isKeyframe: isKeyframe)
        let target = UnsafeMutableRawBufferPointer.allocate(byteCount: plan.byteCount, alignment: 16)
        defer { target.deallocate() }
        packetizer.write(input, timestamp: 1, to: target, packets: &extents)
        guard plan.packetCount > 0 else { continue }
        precondition(extents.count == plan.packetCount && extents.last!.end == plan.byteCount, "the plan was wrong")
        precondition(
            extents.allSatisfy { $0.byteCount <= 64 && $0.byteCount > RTPHeader.byteCount }, "a packet of a wrong size")
        let markers = extents.map { RTPHeader(target[$0.offset..<$0.end])!.marker }
        precondition(markers.dropLast().allSatisfy { !$0 } && markers.last!, "a marker bit in the middle")
    }
    return 0
}
