// SPDX-License-Identifier: Apache-2.0

extension FrameHostError: CustomStringConvertible {
    /// The remedy of ``Code/broken`` where the fault names none.
    static let report = "This is a bug of the stage or of framehost: report it, with the chain file."

    /// `place: what. remedy` on one line, with the cause on lines of its own, indented by two spaces.
    public var description: String {
        let place = place.description
        var text = place.isEmpty ? "" : "\(place): "
        text += what.hasSuffix(".") || what.hasSuffix("?") ? what : what + "."
        if !remedy.isEmpty { text += " " + remedy } else if code == .broken { text += " " + Self.report }
        text = text.printable()
        if !cause.isEmpty { text += "\n  " + cause.printable(keeping: .all).replacing("\n", with: "\n  ") }
        return text
    }
}

extension String {
    /// `text` with every occurrence of a single character replaced; Core has no Foundation.
    func replacing(_ character: Character, with replacement: String) -> String {
        var result = ""
        for each in self { if each == character { result += replacement } else { result.append(each) } }
        return result
    }
}

extension FrameHostErrors: CustomStringConvertible {
    /// One fault a line, in order.
    public var description: String { errors.map(\.description).joined(separator: "\n") }
}
