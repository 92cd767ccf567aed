// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import FrameSupport
import Glibc

/// WS-Discovery over IPv4: answers probes on the multicast address of all networks of this machine, and says hello and
/// bye there.
///
/// Several devices of a machine share the port. Each gets every multicast message.
final class Discovery: Sendable {
    static let port = 3702
    static let group: UInt32 = 0xefff_fffa

    private struct State {
        var joined: Set<Interface> = []
        var counter: MessageCounter
        var isClosed = false
    }

    private let channel: any Channel
    private let state: Locked<State>
    private let facts: Locked<DeviceFacts>
    private let httpPort: Int
    /// The only address, where the server listens on one.
    private let address: UInt32?

    /// [control thread]
    ///
    /// - Parameters:
    ///   - loop: Where the socket is served.
    ///   - address: Where the server listens; nil for all addresses.
    /// - Throws: What the system says where the port cannot be had.
    init(
        _ loop: any EventLoop, facts: Locked<DeviceFacts>, httpPort: Int, address: UInt32?, started: UInt32
    ) throws {
        (self.facts, self.httpPort, self.address) = (facts, httpPort, address)
        let state = Locked(State(counter: MessageCounter(instance: started)))
        self.state = state
        let box = Locked<Discovery?>(nil)
        channel = try DatagramBootstrap(group: loop)
            .channelOption(.socketOption(.so_reuseaddr), value: 1)
            .channelOption(
                .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: DiscoveryMessage.mostBytes)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable {
                        (socket: NIOBSDSocket.Handle) in _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        Handler { bytes, from in box.withLock { $0 }?.answer(bytes, from) })
                }
            }
            .bind(host: "0.0.0.0", port: Self.port).wait()
        box.withLock { $0 = self }
        // The box must not keep what owns the channel.
        channel.closeFuture.whenComplete { _ in box.withLock { $0 = nil } }
        facts.withLock { $0.isDiscoverable = true }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        typealias OutboundOut = AddressedEnvelope<ByteBuffer>

        let answer: @Sendable ([UInt8], UInt32) -> [UInt8]?

        init(_ answer: @escaping @Sendable ([UInt8], UInt32) -> [UInt8]?) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = Self.unwrapInboundIn(data)
            guard case .v4(let from) = envelope.remoteAddress,
                let bytes = answer(
                    Array(envelope.data.readableBytesView), UInt32(bigEndian: from.address.sin_addr.s_addr))
            else { return }
            let data = AddressedEnvelope(remoteAddress: envelope.remoteAddress, data: ByteBuffer(bytes: bytes))
            context.writeAndFlush(Self.wrapOutboundOut(data), promise: nil)
        }

        /// A client that has gone (ECONNREFUSED by ICMP) is no reason to close.
        func errorCaught(context: ChannelHandlerContext, error: any Error) {}
    }

    /// [network loop] Nil where there is nothing to answer. Nobody outside of this machine's networks gets an answer, so
    /// that a forged sender's address reaches nobody far away.
    private func answer(_ bytes: [UInt8], _ from: UInt32) -> [UInt8]? {
        let joined = state.withLock { $0.joined }
        guard let interface = joined.first(where: { $0.reaches(from) }),
            let question = DiscoveryMessage.question(bytes)
        else { return nil }
        let facts = facts.withLock { $0 }
        let url = url(interface)
        switch question {
        case .probe(let id, let types, let scopes, let isExact):
            guard DiscoveryMessage.matches(facts, types: types, scopes: scopes, isExact: isExact),
                let sequence = answerNumber()
            else { return nil }
            return DiscoveryMessage.probeMatches(facts, at: url, to: id, id: Self.uuid(), sequence)
        case .resolve(let id, let address):
            guard address.lowercased() == "urn:uuid:\(facts.identity.uuid)", let sequence = answerNumber() else {
                return nil
            }
            return DiscoveryMessage.resolveMatches(facts, at: url, to: id, id: Self.uuid(), sequence)
        }
    }

    private func url(_ interface: Interface) -> String {
        "http://\(interface.text):\(httpPort)\(ServicePath.device)"
    }

    /// The number of an answer; nil if there were too many in this second.
    private func answerNumber() -> DiscoveryMessage.Sequence? {
        let now = MonotonicTime.now()
        return state.withLock { $0.isClosed ? nil : $0.counter.answer(now: now) }
    }

    private static func uuid() -> String {
        var random = SystemRandomNumberGenerator()
        let a = UInt64.random(in: .min ... .max, using: &random)
        let b = UInt64.random(in: .min ... .max, using: &random)
        func hex(_ number: UInt64, _ digits: Int) -> String {
            let text = String(number, radix: 16)
            return String(repeating: "0", count: max(digits - text.count, 0)) + text
        }
        let third = a & 0xfff | 0x4000
        let fourth = b >> 48 & 0x3fff | 0x8000
        let first = "\(hex(a >> 32, 8))-\(hex(a >> 16 & 0xffff, 4))"
        return "\(first)-\(hex(third, 4))-\(hex(fourth, 4))-\(hex(b & 0xffff_ffff_ffff, 12))"
    }

    /// [service thread] Joins the group on networks that have come, and says hello there.
    ///
    /// - Returns: Whether there is any network.
    func join() -> Bool {
        let now = Set(Interface.all().filter { address == nil || $0.address == address })
        let new = state.withLock { state -> [Interface] in
            guard !state.isClosed else { return [] }
            defer { state.joined = now }
            return now.subtracting(state.joined).sorted { $0.name < $1.name }
        }
        for interface in new {
            add(interface)
            let sequence = state.withLock { $0.counter.announcement() }
            send(
                DiscoveryMessage.hello(facts.withLock { $0 }, at: url(interface), id: Self.uuid(), sequence), interface)
        }
        return !now.isEmpty
    }

    /// IP_ADD_MEMBERSHIP (ip(7)). Once more on the same interface is an error that means nothing.
    private func add(_ interface: Interface) {
        let channel = channel
        channel.eventLoop.execute {
            try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable { (socket: NIOBSDSocket.Handle) in
                var request = ip_mreq()
                request.imr_multiaddr.s_addr = Self.group.bigEndian
                request.imr_interface.s_addr = interface.address.bigEndian
                _ = setsockopt(
                    socket, Int32(IPPROTO_IP), IP_ADD_MEMBERSHIP, &request, socklen_t(MemoryLayout<ip_mreq>.size))
            }
        }
    }

    /// [any thread but the loop] Sends to the group on one network. A socket for each message: there are two in a run.
    private func send(_ bytes: [UInt8], _ interface: Interface) {
        let socket = Glibc.socket(
            AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard socket >= 0 else { return }
        defer { Glibc.close(socket) }
        var from = in_addr(s_addr: interface.address.bigEndian)
        _ = setsockopt(
            socket, Int32(IPPROTO_IP), IP_MULTICAST_IF, &from, socklen_t(MemoryLayout<in_addr>.size))
        var to = sockaddr_in()
        to.sin_family = sa_family_t(AF_INET)
        to.sin_port = UInt16(Self.port).bigEndian
        to.sin_addr.s_addr = Self.group.bigEndian
        _ = withUnsafePointer(to: &to) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(socket, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// [thread of the end] Says bye and closes the socket.
    func close() {
        // From here on nothing is answered: what comes after the Bye would contradict it.
        let joined = state.withLock { state in
            state.isClosed = true
            return state.joined
        }
        for interface in joined {
            let sequence = state.withLock { $0.counter.announcement() }
            send(DiscoveryMessage.bye(facts.withLock { $0 }, id: Self.uuid(), sequence), interface)
        }
        channel.close(promise: nil)
    }
}
