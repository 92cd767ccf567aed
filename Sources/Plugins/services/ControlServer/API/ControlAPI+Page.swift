// SPDX-License-Identifier: Apache-2.0

import ControlPage
import FrameCore

/// The page at `/`.
extension ControlAPI {
    /// The content security policy of the page and its files: nothing from elsewhere, nothing inline.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    /// A file of the page; nil for any other address.
    ///
    /// - Throws: ``Refusal`` by the gate, or for another method.
    func page(_ head: RequestHead) throws -> Answer? {
        guard head.target.hasPrefix("/") else { return nil }
        let name = head.target.dropFirst().prefix { $0 != "?" }
        guard let file = PageFiles.file(String(name)) else { return nil }
        if let refusal = gate.refusal(of: head, room: name.isEmpty ? .page : .pageFile) { throw refusal }
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
