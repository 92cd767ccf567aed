// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// libcurl and Nettle behind `libCFetch.so`, loaded when first needed: a chain that runs never pays for them.
struct FetchLibrary {
    struct Result {
        /// CURLcode.
        var code: Int32
        /// The HTTP status of the last answer.
        var status: Int32
        /// errno of a write that failed.
        var writeError: Int32
        var isTooLong: Bool
        var words: String

        /// Whether the server refuses to continue within a file: CURLE_RANGE_ERROR, or Range Not Satisfiable.
        var refusesRange: Bool { code == 33 || status == 416 }
    }

    // The functions of CFetch.h.
    private typealias Progress = @convention(c) (UnsafeMutableRawPointer?, Int64) -> Void
    private typealias Fetch =
        @convention(c) (
            UnsafePointer<CChar>, UnsafePointer<CChar>?, Int64, Int64, Int32, Progress?, UnsafeMutableRawPointer?,
            UnsafeMutablePointer<Int32>,
            UnsafeMutablePointer<CChar>, Int
        ) -> Void
    private typealias Digest = @convention(c) (Int32, UnsafeMutablePointer<UInt8>) -> Int32
    private typealias DigestOfBytes = @convention(c) (UnsafeRawPointer?, Int, UnsafeMutablePointer<UInt8>) -> Void

    private typealias Rename = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32

    private typealias Take = @convention(c) (UnsafeMutableRawPointer?, Int32, UnsafePointer<UInt8>?, Int) -> Int32
    private typealias Request =
        @convention(c) (
            UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>?, UnsafePointer<UnsafePointer<CChar>?>?,
            Int,
            UnsafeRawPointer?, Int, Int64, Take?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>,
            UnsafeMutablePointer<CChar>, Int
        ) -> Void

    private let fetch: Fetch
    private let ask: Request
    private let rename: Rename
    private let digest: Digest
    private let digestOfBytes: DigestOfBytes

    /// - Throws: ``FrameHostError`` `.unavailable` with what to install.
    init() throws {
        let path = "\(PluginRegistry.executableFolder)/libCFetch.so"
        guard let handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), let fetch = dlsym(handle, "fh_fetch"),
            let digest = dlsym(handle, "fh_fetch_sha256"), let rename = dlsym(handle, "fh_fetch_rename_new"),
            let ask = dlsym(handle, "fh_fetch_request"), let digestOfBytes = dlsym(handle, "fh_fetch_sha256_of")
        else {
            throw FrameHostError(
                .unavailable, place: path, what: "the library for network requests and SHA-256 cannot be loaded",
                remedy: "Install the packages libcurl4 and libnettle8, or build framehost again.",
                cause: String(cString: dlerror()))
        }
        self.fetch = unsafeBitCast(fetch, to: Fetch.self)
        self.ask = unsafeBitCast(ask, to: Request.self)
        self.rename = unsafeBitCast(rename, to: Rename.self)
        self.digest = unsafeBitCast(digest, to: Digest.self)
        self.digestOfBytes = unsafeBitCast(digestOfBytes, to: DigestOfBytes.self)
    }

    /// The file of certificates to trust in place of the system's, from curl's environment variables.
    static var authorities: String? {
        for name in ["CURL_CA_BUNDLE", "SSL_CERT_FILE"] {
            if let value = getenv(name), value.pointee != 0 { return String(cString: value) }
        }
        return nil
    }

    /// One GET, written to `file` from the byte `start` on and no further than `most`.
    func get(_ url: String, authorities: String?, from start: Int, most: Int, to file: Int32, progress: FetchProgress)
        -> Result
    {
        var values = [Int32](repeating: 0, count: 4)
        var words = [CChar](repeating: 0, count: 512)
        func call(_ authorities: UnsafePointer<CChar>?) {
            fetch(
                url, authorities, Int64(start), Int64(most), file,
                { context, bytes in
                    Unmanaged<FetchProgress>.fromOpaque(context!).takeUnretainedValue().show(Int(clamping: bytes))
                },
                Unmanaged.passUnretained(progress).toOpaque(), &values, &words, words.count)
        }
        if let authorities { authorities.withCString(call) } else { call(nil) }
        return Result(
            code: values[0], status: values[1], writeError: values[2], isTooLong: values[3] != 0,
            words: String(decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    /// One request over HTTP or HTTPS.
    ///
    /// - Parameters:
    ///   - authorities: A file of certificates; nil for the system's.
    ///   - fields: Whole header lines.
    ///   - seconds: The longest time; nil for no limit.
    ///   - take: Gets the status and pieces of the answer as they come. It ends the transfer by returning false.
    func request(
        _ method: String, _ url: String, authorities: String?, fields: [String], body: [UInt8]?, seconds: Int?,
        take: @escaping (Int, UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Result {
        final class Taker {
            let take: (Int, UnsafeBufferPointer<UInt8>) -> Bool
            init(_ take: @escaping (Int, UnsafeBufferPointer<UInt8>) -> Bool) { self.take = take }
        }
        var values = [Int32](repeating: 0, count: 4)
        var words = [CChar](repeating: 0, count: 512)
        let taker = Taker(take)
        let lines: [UnsafeMutablePointer<CChar>?] = fields.map { strdup($0) }
        let bundle = authorities.flatMap { strdup($0) }
        defer {
            for line in lines { free(line) }
            free(bundle)
        }
        withExtendedLifetime(taker) {
            (body ?? []).withUnsafeBytes { bytes in
                ask(
                    method, url, bundle, lines.map { UnsafePointer($0) }, lines.count,
                    body == nil ? nil : bytes.baseAddress,
                    bytes.count, Int64(seconds ?? 0),
                    { context, status, bytes, count in
                        let taker = Unmanaged<Taker>.fromOpaque(context!).takeUnretainedValue()
                        return taker.take(Int(status), UnsafeBufferPointer(start: bytes, count: count)) ? 0 : 1
                    },
                    Unmanaged.passUnretained(taker).toOpaque(), &values, &words, words.count)
            }
        }
        return Result(
            code: values[0], status: values[1], writeError: values[2], isTooLong: values[3] != 0,
            words: String(decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    /// Renames a file unless `to` exists. Returns an errno, 0 when the file has the new name.
    func renameToNew(_ from: String, _ to: String) -> Int32 { rename(from, to) }

    /// SHA-256 of an open file in lower-case hexadecimal; nil with `errno` when it cannot be read.
    func sha256(of file: Int32) -> String? {
        var bytes = [UInt8](repeating: 0, count: 32)
        guard digest(file, &bytes) == 0 else { return nil }
        return Self.hexadecimal(bytes)
    }

    /// SHA-256 of a text's UTF-8 in lower-case hexadecimal.
    func sha256(of text: String) -> String {
        var (text, bytes) = (text, [UInt8](repeating: 0, count: 32))
        text.withUTF8 { digestOfBytes($0.baseAddress, $0.count, &bytes) }
        return Self.hexadecimal(bytes)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { byte in String(byte >> 4, radix: 16) + String(byte & 15, radix: 16) }.joined()
    }
}

/// Shows on a terminal how far a transfer is.
final class FetchProgress {
    private let title: String
    private let total: Int
    private var shown = -1

    init(_ title: String, total: Int) {
        self.title = title
        self.total = total
    }

    func show(_ bytes: Int) {
        guard Terminal.isInteractive, total > 0 else { return }
        let percent = min(bytes, total) * 100 / total
        guard percent != shown else { return }
        shown = percent
        Terminal.write("\r\(title)  \(percent) %\u{1b}[K", to: .log, as: .progress)
    }

    func end() { if shown >= 0 { Terminal.write("\r\u{1b}[K", to: .log, as: .progress) } }
}
