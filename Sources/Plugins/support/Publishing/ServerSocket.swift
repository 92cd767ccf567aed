// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import FrameCore
import FrameSupport
import Glibc

/// Why a server cannot be used, as a part of a sentence.
package struct ServerFault: Error, Equatable {
    package let reason: String
    /// Whether the server said too much that nothing had asked for (``UnaskedBound``).
    package let isFlood: Bool

    package init(_ reason: String, isFlood: Bool = false) { (self.reason, self.isFlood) = (reason, isFlood) }

    /// Words of a server for a message: printable ASCII, at most 200 characters.
    package static func words(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.prefix(200).map { (32...126).contains($0) ? $0 : 63 }, as: UTF8.self)
    }
}

/// When waits end: at a time, or as soon as the run does.
package struct Patience: Sendable {
    /// Milliseconds of the monotonic clock.
    package let end: Int64
    private let isOver: @Sendable () -> Bool

    /// - Parameter isOver: Whether nobody waits any longer. It is asked every 20 ms.
    package init(milliseconds: Int, isOver: @escaping @Sendable () -> Bool) {
        end = MonotonicTime.milliseconds() + Int64(max(milliseconds, 0))
        self.isOver = isOver
    }

    /// Milliseconds that are left; 0 when the run ends.
    package var left: Int { isOver() ? 0 : Int(clamping: max(end - MonotonicTime.milliseconds(), 0)) }
    /// At most this long waits go on without a look at the end of the run.
    package static let look = 20
}

/// A connection to a server over TCP, and TLS where it is asked for. Of a call none waits longer than it is told, and
/// none uses select(2): a descriptor may have any number.
///
/// One thread uses it.
package final class ServerSocket {
    let file: Int32
    private var tls: OpaquePointer?
    /// What TLS waits for at present, where it is not what the call was for.
    private var turned: Int16 = 0

    private init(file: Int32) { self.file = file }

    deinit {
        if let tls { SSL_free(tls) }
        close(file)
    }

    // MARK: Connecting

    /// Connects to the first address of the server's name that answers.
    ///
    /// A name is looked up with getaddrinfo(3), which waits as long as the system says.
    package static func connect(_ address: ServerAddress, _ patience: Patience) throws(ServerFault) -> ServerSocket {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(address.host, "\(address.port)", &hints, &list)
        guard code == 0, let list else {
            throw ServerFault("'\(address.host)' cannot be looked up: \(String(cString: gai_strerror(code)))")
        }
        defer { freeaddrinfo(list) }
        var fault = ServerFault("no address")
        var left = sequence(first: list, next: { $0.pointee.ai_next }).prefix(8).map(\.pointee)[...]
        while let entry = left.popFirst() {
            do throws(ServerFault) {
                return try connect(entry, milliseconds: patience.left / (left.count + 1), patience)
            } catch { fault = error }
        }
        throw fault
    }

    private static func connect(
        _ entry: addrinfo, milliseconds: Int, _ patience: Patience
    ) throws(ServerFault) -> ServerSocket {
        let file = socket(
            entry.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue),
            entry.ai_protocol)
        guard file >= 0 else { throw ServerFault(text(errno)) }
        let made = ServerSocket(file: file)
        var one: Int32 = 1
        setsockopt(file, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        guard Glibc.connect(file, entry.ai_addr, entry.ai_addrlen) != 0 else { return made }
        guard errno == EINPROGRESS || errno == EINTR else { throw ServerFault(text(errno)) }
        let end = MonotonicTime.milliseconds() + Int64(milliseconds)
        while !made.wait(POLLOUT, milliseconds: Patience.look) {
            guard MonotonicTime.milliseconds() < end, patience.left > 0 else { throw ServerFault(text(ETIMEDOUT)) }
        }
        var (fault, size): (Int32, socklen_t) = (0, socklen_t(MemoryLayout<Int32>.size))
        getsockopt(file, SOL_SOCKET, SO_ERROR, &fault, &size)
        guard fault == 0 else { throw ServerFault(text(fault)) }
        return made
    }

    /// Begins TLS, and checks that the certificate names the server.
    ///
    /// - Parameter host: A name, or an address.
    package func secure(_ trust: TLSTrust, host: String, _ patience: Patience) throws(ServerFault) {
        ERR_clear_error()
        guard let made = SSL_new(trust.context), SSL_set_fd(made, file) == 1 else {
            throw ServerFault("OpenSSL cannot be used: \(TLSTrust.reason())")
        }
        tls = made
        func refused(_ reason: String?) -> ServerFault {
            ServerFault(TLSTrust.fault(host: host, verify: trust.verifies, reason: reason))
        }
        let isAddress = Self.isAddress(host)
        // RFC 6066, section 3: an address is no server name.
        if !isAddress {
            _ = host.withCString {
                SSL_ctrl(
                    made, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                    UnsafeMutableRawPointer(mutating: $0))
            }
        }
        while true {
            ERR_clear_error()
            let code = SSL_connect(made)
            if code == 1 { break }
            let number = errno
            switch SSL_get_error(made, code) {
            case SSL_ERROR_WANT_READ: _ = wait(POLLIN, milliseconds: min(Patience.look, patience.left))
            case SSL_ERROR_WANT_WRITE: _ = wait(POLLOUT, milliseconds: min(Patience.look, patience.left))
            case SSL_ERROR_SYSCALL: throw refused(number == 0 ? "the server closed it" : Self.text(number))
            default:
                let verdict = SSL_get_verify_result(made)
                throw refused(
                    verdict == Int(X509_V_OK)
                        ? TLSTrust.reason() : String(cString: X509_verify_cert_error_string(verdict)))
            }
            guard patience.left > 0 else { throw refused("no answer in time") }
            UnaskedBound.rest()
        }
        guard trust.verifies else { return }
        guard let certificate = SSL_get1_peer_certificate(made) else { throw refused("no certificate") }
        defer { X509_free(certificate) }
        let names =
            X509_check_host(certificate, host, host.utf8.count, 0, nil) == 1
            || (isAddress && X509_check_ip_asc(certificate, host, 0) == 1)
        guard names else { throw refused("the certificate names another host") }
    }

    package static func isAddress(_ host: String) -> Bool {
        var bytes = in6_addr()
        return inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1
    }

    // MARK: Reading and writing, without waiting

    /// Reads what has come, at most 64 KiB.
    ///
    /// - Returns: Nothing where nothing has come.
    /// - Throws: ``ServerFault`` where the connection is closed or broken.
    package func read() throws(ServerFault) -> [UInt8] {
        var result: Result<Int, ServerFault> = .success(0)
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            result = receive(buffer)
            if case .success(let got) = result { count = got }
        }
        _ = try result.get()
        return bytes
    }

    private func receive(_ buffer: UnsafeMutableBufferPointer<UInt8>) -> Result<Int, ServerFault> {
        var done = 0
        while done < buffer.count {
            let outcome = once(buffer.count - done, POLLIN) { tls, count in
                if let tls { return Int(SSL_read(tls, buffer.baseAddress! + done, Int32(clamping: count))) }
                return recv(file, buffer.baseAddress! + done, count, 0)
            }
            switch outcome {
            // What came before the end is read first.
            case .failure(let fault): return done > 0 ? .success(done) : .failure(fault)
            case .success(0): return .success(done)
            case .success(let got): done += got
            }
        }
        return .success(done)
    }

    /// Writes as much as the connection takes now.
    ///
    /// - Returns: How many bytes that was.
    package func write(_ bytes: ArraySlice<UInt8>) throws(ServerFault) -> Int {
        guard !bytes.isEmpty else { return 0 }
        return try bytes.withUnsafeBufferPointer { buffer in
            once(buffer.count, POLLOUT) { tls, count in
                if let tls { return Int(SSL_write(tls, buffer.baseAddress!, Int32(clamping: count))) }
                return send(file, buffer.baseAddress!, count, Int32(MSG_NOSIGNAL))
            }
        }.get()
    }

    /// - Returns: 0 where the call would have to wait.
    private func once(
        _ count: Int, _ events: Int32, _ call: (OpaquePointer?, Int) -> Int
    ) -> Result<Int, ServerFault> {
        while true {
            if tls != nil { ERR_clear_error() }
            let got = call(tls, count)
            let number = errno
            if got > 0 {
                turned = 0
                return .success(got)
            }
            guard let tls else {
                if got == 0 { return .failure(ServerFault("the server closed the connection")) }
                if number == EINTR { continue }
                return number == EAGAIN || number == EWOULDBLOCK
                    ? .success(0) : .failure(ServerFault(Self.text(number)))
            }
            switch SSL_get_error(tls, Int32(clamping: got)) {
            case SSL_ERROR_WANT_READ: turned = events == POLLIN ? 0 : Int16(POLLIN)
            case SSL_ERROR_WANT_WRITE: turned = events == POLLOUT ? 0 : Int16(POLLOUT)
            case SSL_ERROR_ZERO_RETURN: return .failure(ServerFault("the server closed the connection"))
            case SSL_ERROR_SYSCALL where number != 0: return .failure(ServerFault(Self.text(number)))
            default: return .failure(ServerFault("the TLS connection broke: \(TLSTrust.reason())"))
            }
            return .success(0)
        }
    }

    // MARK: Waiting

    /// What poll(2) is asked for.
    func wanted(writes: Bool) -> pollfd {
        pollfd(file: file, events: Int16(POLLIN) | (writes ? Int16(POLLOUT) : 0) | turned)
    }

    /// Whether TLS holds bytes that are read already, of which poll(2) does not know.
    var hasMore: Bool { tls.map { SSL_pending($0) > 0 } ?? false }

    /// Waits until the connection can be read or is broken, or with `writes` until it can be written.
    package func wait(writes: Bool = false, milliseconds: Int) {
        guard !hasMore else { return }
        var wanted = wanted(writes: writes)
        poll(&wanted, 1, Int32(clamping: max(milliseconds, 0)))
    }

    private func wait(_ events: Int32, milliseconds: Int) -> Bool {
        var wanted = pollfd(file: file, events: Int16(events))
        return poll(&wanted, 1, Int32(clamping: max(milliseconds, 0))) > 0
    }

    private static func text(_ number: Int32) -> String { String(cString: strerror(number)) }
}

extension pollfd {
    fileprivate init(file: Int32, events: Int16) { self.init(fd: file, events: events, revents: 0) }
}
