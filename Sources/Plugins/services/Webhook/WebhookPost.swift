// SPDX-License-Identifier: Apache-2.0

import CCurl
import COpenSSL
import FrameCore
import FrameSupport
import Glibc
import Publishing
import Shared

/// One request after the other to one receiver, by libcurl.
///
/// `@unchecked Sendable`: one thread posts, and the others only wake it (curl_multi_wakeup(3) may be called by any).
final class WebhookPost: @unchecked Sendable {
    /// Where requests go, and what is said about this side. All of it is for the library alone.
    struct Target: Sendable {
        var address: WebhookAddress
        var login: ServerLogin?
        var verify: Bool
        var caFile: String?
        var crlFile: String?
        var timeoutSeconds: Int
    }

    /// How a request ended.
    enum Outcome: Equatable {
        /// - retryAfter: Seconds of its field; nil without one.
        case answered(status: Int, retryAfter: Int?)
        /// Nothing that counts as an answer came: a part of a sentence.
        case failed(String)
        /// Nobody waits any longer.
        case cancelled
    }

    /// The most bytes that are read of an answer: of its header fields, and of its text, which nobody reads.
    static let mostHeaderBytes = 65_536
    static let mostBodyBytes = 65_536
    /// How long the text may take after the header fields, in milliseconds. Then the connection is closed.
    static let mostBodyMilliseconds: Int64 = 1000

    /// What has come of an answer. The library's functions have its address while a request runs.
    private struct Answer {
        var headerBytes = 0
        var bodyBytes = 0
        /// Whether the header fields of the last answer are complete.
        var isWhole = false
        var isTooLarge = false
    }

    private let multi: UnsafeMutableRawPointer
    private let easy: UnsafeMutableRawPointer
    private let target: Target
    private let answer: UnsafeMutablePointer<Answer>
    private let words: UnsafeMutablePointer<CChar>

    /// Once for the process. Without OpenSSL's own clean-up at its end: a thread that was abandoned may still use it.
    private static let isReady: Bool = {
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        return curl_global_init(fh_curl_global) == CURLE_OK
    }()

    /// [control thread] Connects to nothing yet.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    init(_ target: Target) throws {
        guard Self.isReady, let multi = curl_multi_init() else { throw Self.shortage }
        guard let easy = curl_easy_init() else {
            curl_multi_cleanup(multi)
            throw Self.shortage
        }
        (self.multi, self.easy, self.target) = (multi, easy, target)
        answer = .allocate(capacity: 1)
        answer.initialize(to: Answer())
        words = .allocate(capacity: Int(CURL_ERROR_SIZE))
        words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        // One receiver, one connection.
        fh_curl_set_connections(multi, 1)
        try setUp()
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_multi_cleanup(multi)
        answer.deallocate()
        words.deallocate()
    }

    private static var shortage: FrameHostError {
        FrameHostError(
            .exhausted, what: "libcurl cannot be used",
            remedy: "End other programs to free memory, then start the chain again.")
    }

    private func setUp() throws {
        var codes = [
            fh_curl_set_text(easy, CURLOPT_URL, target.address.secretText),
            fh_curl_set_text(easy, CURLOPT_PROTOCOLS_STR, target.address.isSecured ? "https" : "http"),
            fh_curl_set_long(easy, CURLOPT_FOLLOWLOCATION, 0),
            // Events are for the receiver that is named, not for a proxy of the environment.
            fh_curl_set_text(easy, CURLOPT_PROXY, ""),
            fh_curl_set_long(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1),
            fh_curl_set_long(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2),
            fh_curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, target.verify ? 1 : 0),
            fh_curl_set_long(easy, CURLOPT_SSL_VERIFYHOST, target.verify ? 2 : 0),
            fh_curl_set_text(easy, CURLOPT_USERAGENT, "framehost"),
            fh_curl_set_long(easy, CURLOPT_NOSIGNAL, 1),
            // A name that is being looked up does not hold up the end.
            fh_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1),
            fh_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT, target.timeoutSeconds),
            fh_curl_set_long(easy, CURLOPT_LOW_SPEED_LIMIT, 1),
            fh_curl_set_long(easy, CURLOPT_LOW_SPEED_TIME, target.timeoutSeconds),
            fh_curl_set_long(easy, CURLOPT_TIMEOUT, 2 * target.timeoutSeconds),
            fh_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, words),
            fh_curl_set_taker(easy, CURLOPT_HEADERFUNCTION, Self.takeHeader),
            fh_curl_set_pointer(easy, CURLOPT_HEADERDATA, answer),
            fh_curl_set_taker(easy, CURLOPT_WRITEFUNCTION, Self.takeBody),
            fh_curl_set_pointer(easy, CURLOPT_WRITEDATA, answer),
        ]
        if let file = target.caFile { codes.append(fh_curl_set_text(easy, CURLOPT_CAINFO, file)) }
        if let file = target.crlFile { codes.append(fh_curl_set_text(easy, CURLOPT_CRLFILE, file)) }
        if let login = target.login {
            codes += [
                fh_curl_set_long(easy, CURLOPT_HTTPAUTH, fh_curl_auth_basic),
                fh_curl_set_text(easy, CURLOPT_USERNAME, login.name),
                fh_curl_set_text(easy, CURLOPT_PASSWORD, login.password),
            ]
        }
        guard codes.allSatisfy({ $0 == CURLE_OK }) else { throw Self.shortage }
    }

    /// Counts a line of the header fields; an empty one ends them (RFC 9112, section 2.1). Those of 1xx come first.
    private static let takeHeader: fh_curl_taker = { bytes, size, count, context in
        guard let answer = context?.assumingMemoryBound(to: Answer.self), let bytes else { return 0 }
        answer.pointee.headerBytes += count
        let line = UnsafeRawBufferPointer(start: bytes, count: count)
        if line.starts(with: "HTTP/".utf8) { answer.pointee.isWhole = false }
        if line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8) { answer.pointee.isWhole = true }
        guard answer.pointee.headerBytes <= WebhookPost.mostHeaderBytes else {
            (answer.pointee.isWhole, answer.pointee.isTooLarge) = (false, true)
            return 0
        }
        return size * count
    }

    /// Counts what nobody reads. It is read at all so that the connection can be used again.
    private static let takeBody: fh_curl_taker = { _, size, count, context in
        guard let answer = context?.assumingMemoryBound(to: Answer.self) else { return 0 }
        answer.pointee.bodyBytes += count
        return answer.pointee.bodyBytes <= WebhookPost.mostBodyBytes ? size * count : 0
    }

    /// [any thread] Lets ``post(_:fields:left:)`` look at the time that is left.
    func wake() { curl_multi_wakeup(multi) }

    /// [sending thread] Posts one body and waits for the answer.
    ///
    /// - Parameters:
    ///   - fields: Whole lines of the header.
    ///   - left: How many milliseconds there are; nil for as many as the options give. Asked again after ``wake()``.
    func post(_ body: [UInt8], fields: [String], left: () -> Int?) -> Outcome {
        var lines: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(lines) }
        for field in fields {
            guard let longer = curl_slist_append(lines, field) else {
                return .failed("there is no memory for a request")
            }
            lines = longer
        }
        answer.pointee = Answer()
        words.pointee = 0
        fh_curl_set_list(easy, CURLOPT_HTTPHEADER, lines)
        return body.withUnsafeBytes { bytes in
            fh_curl_set_long(easy, CURLOPT_POST, 1)
            fh_curl_set_long(easy, CURLOPT_POSTFIELDSIZE, bytes.count)
            fh_curl_set_pointer(easy, CURLOPT_POSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress))
            curl_multi_add_handle(multi, easy)
            defer { curl_multi_remove_handle(multi, easy) }
            var running: Int32 = 1
            var textEnd: Int64?
            while true {
                guard curl_multi_perform(multi, &running) == CURLM_OK else { return .failed("libcurl failed") }
                if running == 0 { return outcome() }
                let now = MonotonicTime.milliseconds()
                if textEnd == nil, status != nil { textEnd = now + Self.mostBodyMilliseconds }
                let left = left()
                // To remove a request that is not done closes its connection.
                if let textEnd, now >= textEnd || left.map({ $0 <= 0 }) ?? false { return outcome() }
                if let left, left <= 0 { return .cancelled }
                let wait = min(left ?? 1000, 1000, textEnd.map { Int($0 - now) } ?? 1000)
                curl_multi_poll(multi, nil, 0, Int32(wait), nil)
            }
        }
    }

    /// The code of the answer, once its header fields are complete. With them the receiver has said all: the text behind
    /// them may be endless, or break off.
    private var status: Int? {
        guard answer.pointee.isWhole else { return nil }
        var status = 0
        fh_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
        return status >= 200 ? status : nil
    }

    private func outcome() -> Outcome {
        var others: Int32 = 0
        var code = CURLE_RECV_ERROR
        while let message = curl_multi_info_read(multi, &others) {
            if message.pointee.msg == CURLMSG_DONE { code = message.pointee.data.result }
        }
        if let status {
            var seconds: curl_off_t = 0
            fh_curl_get_offset(easy, CURLINFO_RETRY_AFTER, &seconds)
            return .answered(status: status, retryAfter: seconds > 0 ? Int(seconds) : nil)
        }
        return .failed(reason(code))
    }

    /// Why there is no answer, as a part of a sentence.
    private func reason(_ code: CURLcode) -> String {
        var (error, connected): (Int, curl_off_t) = (0, 0)
        fh_curl_get_long(easy, CURLINFO_OS_ERRNO, &error)
        fh_curl_get_offset(easy, CURLINFO_PRETRANSFER_TIME_T, &connected)
        let system = Int32(exactly: error).flatMap { $0 > 0 ? String(cString: strerror($0)) : nil }
        let said = ServerFault.words(String(cString: words).utf8)
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST: return "the name '\(target.address.server.host)' cannot be resolved"
        case CURLE_COULDNT_CONNECT: return system ?? (said.isEmpty ? "no connection" : said)
        case CURLE_OPERATION_TIMEDOUT where connected == 0: return "no connection within \(target.timeoutSeconds) s"
        case CURLE_OPERATION_TIMEDOUT: return "it did not answer within the time of 'timeoutSeconds'"
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CRL_BADFILE,
            CURLE_SSL_CACERT_BADFILE:
            return TLSTrust.fault(
                host: target.address.server.host, verify: target.verify, reason: said.isEmpty ? nil : said)
        case _ where answer.pointee.isTooLarge:
            return "the header of its answer has more than \(Self.mostHeaderBytes >> 10) KiB"
        case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE, CURLE_OK:
            return "it closed the connection before it had answered"
        default: return said.isEmpty ? "libcurl failed (\(code.rawValue))" : "what answers does not speak HTTP: \(said)"
        }
    }
}
