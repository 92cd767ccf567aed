// SPDX-License-Identifier: Apache-2.0

import CDatagram
import Glibc
import Synchronization
import Testing

@testable import RTSPSink
import ServerAccess

/// Sending to many, and what becomes of it where the kernel refuses.
@Suite struct DatagramSenderTests {
    /// What the sender asked of the kernel.
    private final class Calls: Sendable {
        let runs = Atomic<Int>(0)
        let all = Atomic<Int>(0)
        let isFull = Atomic<Bool>(true)
    }

    /// A sender whose system call fails with `code` when `refuses` says so of its first message, as sendmmsg(2) does.
    private static func sender(_ calls: Calls, _ code: Int32, refuses: @escaping @Sendable (fh_datagrams) -> Bool)
        -> DatagramSender
    {
        let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(socket) }
        return DatagramSender(mediaSocket: socket, controlSocket: socket, isIPv6: false) { socket, sends, count in
            calls.all.wrappingAdd(1, ordering: .relaxed)
            var taken: UInt32 = 0
            while taken < count, !refuses(sends[Int(taken)]) { taken += 1 }
            for place in 0..<Int(taken) where sends[place].count > 1 { calls.runs.wrappingAdd(1, ordering: .relaxed) }
            if taken > 0 { return fh_send_datagrams(socket, sends, taken) }
            errno = code
            return -1
        }
    }

    private static func reader(_ port: Int) -> UDPReader {
        let ports = TransportSpec.Pair(UInt16(port), UInt16(port + 1))
        let local = IPAddress("127.0.0.1")!
        let order = PlayOrder(
            sessionID: "\(port)", number: 1, path: "/live",
            transports: SessionTransports(.pictures, .udp(local, ports: ports)), peer: local, user: nil,
            url: RTSPURL(path: "/live"))
        let addresses = UDPReader.Addresses(
            media: SocketAddressStorage(local, port: ports.rtp, isIPv6: false),
            control: SocketAddressStorage(local, port: ports.rtcp, isIPv6: false))
        return UDPReader(order: order, addresses: PerMedium(pictures: addresses, sound: nil))
    }

    /// A keyframe of one slice in packets of 300 bytes.
    private static func block(_ index: UInt64, _ packetizer: inout NALPacketizer) -> (
        block: MediaBlock, units: [[UInt8]]
    ) {
        let slice = H264PacketizerTests.unit(0x65, 5000)
        let block = MediaBlock()
        H264PacketizerTests.annexB([slice]).withUnsafeBytes { bytes in
            let plan = packetizer.plan(bytes, isKeyframe: true)
            block.fill(
                index: index, isKeyframe: true, unit: bytes, plannedBytes: plan.byteCount, timestamp: 1, report: nil,
                packetizer: &packetizer)
        }
        return (block, RTSPSinkTests.sets + [slice])
    }

    @Test(arguments: [EIO, EINVAL, EMSGSIZE]) func sendsPacketsSinglyFromThenOnWhereRunsAreRefused(code: Int32) throws {
        let calls = Calls()
        let sender = Self.sender(calls, code) { $0.count > 1 }
        let receivers = try (0..<3).map { _ in try DatagramReceiver() }
        let readers = receivers.map { Self.reader($0.port) }
        var packetizer = H264PacketizerTests.packetizer(300)
        for index in 0..<3 {
            let (block, units) = Self.block(UInt64(index), &packetizer)
            #expect(block.runs.contains { $0.packetCount > 1 })
            sender.send(block, to: readers, DatagramScratch())
            for receiver in receivers { #expect(try receiver.units(1) == [units]) }
        }
        #expect(calls.runs.load(ordering: .relaxed) == 0)
        #expect(readers.allSatisfy { !$0.takesRuns && $0.refusedCount == 0 })
    }

    @Test func sendsRunsStillToThoseWhoseWayTakesThem() throws {
        let calls = Calls()
        let receivers = try (0..<3).map { _ in try DatagramReceiver() }
        let readers = receivers.map { Self.reader($0.port) }
        let narrow = UInt16(receivers[1].port).bigEndian
        let sender = Self.sender(calls, EINVAL) { message in
            message.count > 1
                && message.address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    $0.pointee.sin_port == narrow
                }
        }
        var packetizer = H264PacketizerTests.packetizer(300)
        for index in 0..<2 {
            let (block, units) = Self.block(UInt64(index), &packetizer)
            sender.send(block, to: readers, DatagramScratch())
            for receiver in receivers { #expect(try receiver.units(1) == [units]) }
        }
        #expect(readers.map(\.takesRuns) == [true, false, true])
        #expect(calls.runs.load(ordering: .relaxed) >= 4)
    }

    /// An address nobody can send to is not the fault of runs.
    @Test func keepsToRunsWhereSinglePacketsAreRefusedToo() {
        let sender = Self.sender(Calls(), EINVAL) { _ in true }
        let reader = Self.reader(9)
        var packetizer = H264PacketizerTests.packetizer(300)
        let (block, _) = Self.block(0, &packetizer)
        sender.send(block, to: [reader], DatagramScratch())
        #expect(reader.takesRuns)
        #expect(reader.refusedCount == block.packets.count)
        #expect(reader.figures.refusedPackets == block.packets.count)
    }

    @Test(arguments: [EAGAIN, ENOBUFS]) func losesAndCountsWhatTheSocketHasNoRoomForAndNeverWaits(code: Int32) throws {
        let calls = Calls()
        let sender = Self.sender(calls, code) { _ in calls.isFull.load(ordering: .relaxed) }
        let receiver = try DatagramReceiver()
        let readers = [Self.reader(receiver.port)] + (0..<99).map { _ in Self.reader(9) }
        var packetizer = H264PacketizerTests.packetizer(300)
        let (lost, _) = Self.block(0, &packetizer)
        sender.send(lost, to: readers, DatagramScratch())
        #expect(readers.allSatisfy { $0.refusedCount == lost.packets.count && $0.takesRuns })
        // One call for each reader and run, none again.
        #expect(calls.all.load(ordering: .relaxed) == readers.count * lost.runs.count)
        calls.isFull.store(false, ordering: .relaxed)
        let (block, units) = Self.block(1, &packetizer)
        sender.send(block, to: readers, DatagramScratch())
        #expect(try receiver.units(1) == [units])
    }
}
