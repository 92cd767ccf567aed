// SPDX-License-Identifier: Apache-2.0

import CDatagram
import FrameNetwork
import Glibc
import ServerAccess

/// A socket address as C takes it, at one place in memory. Immutable: the invariant behind `@unchecked Sendable`.
final class SocketAddressStorage: @unchecked Sendable {
    let pointer: UnsafeMutablePointer<sockaddr_in6>
    let byteCount: socklen_t

    /// - Parameter isIPv6: For a socket of that family, which reaches IPv4 as `::ffff:a.b.c.d` (ipv6(7)).
    init(_ address: IPAddress, port: UInt16, isIPv6: Bool) {
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: sockaddr_in6())
        if isIPv6 {
            byteCount = socklen_t(MemoryLayout<sockaddr_in6>.size)
            pointer.pointee.sin6_family = sa_family_t(AF_INET6)
            pointer.pointee.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &pointer.pointee.sin6_addr) { bytes in
                bytes.storeBytes(of: address.high.bigEndian, as: UInt64.self)
                bytes.storeBytes(of: address.low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
        } else {
            byteCount = socklen_t(MemoryLayout<sockaddr_in>.size)
            pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { v4 in
                v4.pointee.sin_family = sa_family_t(AF_INET)
                v4.pointee.sin_port = port.bigEndian
                v4.pointee.sin_addr.s_addr = UInt32(truncatingIfNeeded: address.low).bigEndian
            }
        }
    }

    deinit { pointer.deallocate() }

    var generic: UnsafePointer<sockaddr> { UnsafeRawPointer(pointer).assumingMemoryBound(to: sockaddr.self) }
}

/// Memory to put messages together in, so that sending allocates nothing once warm. [network loop: each has its own]
final class DatagramScratch {
    let sends = UnsafeMutableBufferPointer<fh_datagrams>.allocate(capacity: Int(FH_MOST_SENDS))
    let group = UnsafeMutableBufferPointer<Unmanaged<UDPReader>>.allocate(capacity: Int(FH_MOST_SENDS))
    /// A block's packets.
    private(set) var parts = UnsafeMutableBufferPointer<iovec>.allocate(capacity: 128)

    deinit {
        sends.deallocate()
        group.deallocate()
        parts.deallocate()
    }

    func setParts(_ packets: [NALPacketizer.Extent], _ base: UnsafeMutableRawPointer) {
        if packets.count > parts.count {
            parts.deallocate()
            parts = .allocate(capacity: 2 * packets.count)
        }
        for (index, packet) in packets.enumerated() {
            parts.initializeElement(at: index, to: iovec(iov_base: base + packet.offset, iov_len: packet.byteCount))
        }
    }
}

/// Sends the packets of a block to many readers with few system calls: one message for each reader and run of packets
/// of equal size, which the kernel cuts (`UDP_SEGMENT`), and 64 messages for each `sendmmsg`.
///
/// A device, or a route with a smaller MTU, may refuse such a message (EIO, EINVAL, EMSGSIZE). That reader's packets
/// are then sent one by one.
///
/// Its sockets are duplicates of those that receive, and stay open as long as this object lives. So no loop can send
/// on a descriptor that has become another file's. All loops share it, since the kernel orders what they send.
final class DatagramSender: Sendable {
    /// ``fh_send_datagrams``; replaced in tests.
    typealias Send = @Sendable (Int32, UnsafePointer<fh_datagrams>, UInt32) -> Int32

    private let mediaSocket: Int32
    private let controlSocket: Int32
    let isIPv6: Bool
    private let canSegment: Bool
    private let send: Send

    /// Duplicates both sockets.
    init(
        mediaSocket: Int32, controlSocket: Int32, isIPv6: Bool, send: @escaping Send = { fh_send_datagrams($0, $1, $2) }
    ) {
        self.mediaSocket = dup(mediaSocket)
        self.controlSocket = dup(controlSocket)
        self.isIPv6 = isIPv6
        self.send = send
        canSegment = fh_can_segment(mediaSocket) != 0
    }

    deinit {
        close(mediaSocket)
        close(controlSocket)
    }

    /// [network loop] Sends a block to the readers that get it. Packets for which the socket has no room are lost and
    /// counted. Never waits.
    ///
    /// - Parameter scratch: The loop's own.
    func send(_ block: MediaBlock, to readers: [UDPReader], _ scratch: DatagramScratch) {
        block.buffer.withUnsafeReadableBytes { bytes in
            let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress!)
            for medium in Medium.allCases {
                guard let report = block.reports[medium] else { continue }
                let part = iovec(iov_base: base + report.offset, iov_len: report.byteCount)
                for reader in readers { sendOne(part, to: reader, medium) }
            }
            scratch.setParts(block.packets, base)
            if canSegment { sendRuns(block, readers, scratch, segmented: true) }
            sendRuns(block, readers, scratch, segmented: false)
        }
    }

    /// Sends either to the readers that take runs in one message, or to the others. A reader that has this block
    /// already is left out.
    private func sendRuns(_ block: MediaBlock, _ readers: [UDPReader], _ scratch: DatagramScratch, segmented: Bool) {
        let (sends, group) = (scratch.sends, scratch.group)
        // Readers are served in groups, so that the packets of a group go out run after run, in order.
        var index = 0
        while index < readers.count {
            var count = 0
            while index < readers.count, count < sends.count {
                if readers[index].takesRuns == segmented || !canSegment, readers[index].admits(block) {
                    group.initializeElement(at: count, to: Unmanaged.passUnretained(readers[index]))
                    count += 1
                }
                index += 1
            }
            for run in block.runs {
                let step = segmented ? run.packetCount : 1
                for first in stride(from: run.firstPacket, to: run.firstPacket + run.packetCount, by: step) {
                    for place in 0..<count {
                        // A reader is in the group only if it has this medium.
                        let address = group[place]._withUnsafeGuaranteedRef { $0.addresses[block.medium]!.media }
                        sends[place] = fh_datagrams(
                            address: address.generic, address_bytes: address.byteCount,
                            parts: scratch.parts.baseAddress! + first,
                            count: step, segment_bytes: UInt16(run.segmentBytes))
                    }
                    push(sends, count, group)
                }
            }
        }
    }

    private func push(
        _ sends: UnsafeMutableBufferPointer<fh_datagrams>, _ count: Int,
        _ group: UnsafeMutableBufferPointer<Unmanaged<UDPReader>>
    ) {
        var done = 0
        while done < count {
            let sent = send(mediaSocket, sends.baseAddress! + done, UInt32(count - done))
            if sent > 0 {
                done += Int(sent)
                continue
            }
            let reason = errno
            if reason == EINTR { continue }
            // There is no room, or no route to this reader. The others still get their packets.
            group[done]._withUnsafeGuaranteedRef { reader in
                if sends[done].count > 1, reason == EIO || reason == EINVAL || reason == EMSGSIZE {
                    pushSingly(sends[done], to: reader)
                } else {
                    reader.refusedCount += sends[done].count
                }
            }
            done += 1
        }
    }

    /// Sends the packets of a refused message one by one.
    private func pushSingly(_ whole: fh_datagrams, to reader: UDPReader) {
        for place in 0..<whole.count {
            var one = whole
            one.parts = whole.parts + place
            one.count = 1
            // If single packets are refused too, joining them was not the reason.
            if send(mediaSocket, &one, 1) == 1 { reader.takesRuns = false } else { reader.refusedCount += 1 }
        }
    }

    /// Nothing is sent of a medium that the reader has not set up.
    private func sendOne(_ part: iovec, to reader: UDPReader, _ medium: Medium) {
        guard let control = reader.addresses[medium]?.control else { return }
        _ = sendto(
            controlSocket, part.iov_base, part.iov_len, Int32(MSG_DONTWAIT), control.generic, control.byteCount)
    }

    /// [network loop] A compound RTCP packet for each medium that the reader has set up.
    func sendControl(_ packets: PerMedium<[UInt8]>, to reader: UDPReader) {
        for medium in Medium.allCases {
            packets[medium].withUnsafeBytes { buffer in
                guard let base = buffer.baseAddress else { return }
                sendOne(
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: base), iov_len: buffer.count), to: reader, medium)
            }
        }
    }
}
