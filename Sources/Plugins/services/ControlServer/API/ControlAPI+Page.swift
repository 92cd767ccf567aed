// SPDX-License-Identifier: Apache-2.0

import ControlPage
import FrameCore

/// The page at `/`.
extension ControlAPI {
    /// The content security policy of the page and its files: nothing from elsewhere, nothing inline.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    /// The name of the page's file that a request asks for; nil for any other address.
    static func pageFile(of head: RequestHead) -> String? {
        guard head.target.hasPrefix("/") else { return nil }
        let name = String(head.target.dropFirst().prefix { $0 != "?" })
        return PageFiles.file(name) == nil ? nil : name
    }

    /// A file of the page; nil for any other address. It needs no right: it has nothing of the run.
    ///
    /// - Throws: ``Refusal`` for another method.
    func page(_ head: RequestHead) throws -> Answer? {
        guard let name = Self.pageFile(of: head), let file = PageFiles.file(name) else { return nil }
        guard head.method == "GET" || head.method == "HEAD" else {
            var refusal = Refusal(
                405, "method-not-allowed", place: "method", "this address does not support \(head.method.prefix(16))",
                "Use GET or HEAD.")
            refusal.fields = ["Allow": "GET, HEAD"]
            throw refusal
        }
        return Answer(200, file.type, .bytes(file.bytes), fields: [("Content-Security-Policy", Self.policy)])
    }
}
