// SPDX-License-Identifier: Apache-2.0

/// The state of one reading: where it stands in the text, what is open, and the faults so far.
struct JSONParser {
    enum Step {
        case key(String)
        case index(Int)
    }

    let bytes: [UInt8]
    let file: String
    let limits: JSONReader.Limits
    /// What to write where the text does not begin with a value; nil where any value will do.
    let valueRemedy: String?
    var faults: [FrameHostError] = []
    var index = 0
    private var line = 1
    private var lineStart = 0
    private var nodeCount = 0
    /// The way to the value being read; one step for each open list or object.
    private(set) var steps: [Step] = []

    init(_ bytes: [UInt8], file: String, limits: JSONReader.Limits, valueRemedy: String?) {
        self.bytes = bytes
        self.file = file
        self.limits = limits
        self.valueRemedy = valueRemedy
    }

    var next: UInt8? { index < bytes.count ? bytes[index] : nil }
    var here: TextPlace { place(of: index) }

    /// Where a byte of the present line stands.
    func place(of index: Int) -> TextPlace { TextPlace(line: line, column: index - lineStart + 1) }

    mutating func readText() throws(FrameHostError) -> JSONNode {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            index = 3
            lineStart = 3
        }
        try checkEncoding()
        try skipSpace()
        guard next != nil else { throw noValue() }
        let node = try readValue()
        try skipSpace()
        guard next == nil else {
            throw expected("the end of the text", remedy: "Remove the rest: a JSON text is only one value.")
        }
        return node
    }

    /// Reads the value that begins at `index`.
    private mutating func readValue(orEnd end: String = "") throws(FrameHostError) -> JSONNode {
        nodeCount += 1
        guard nodeCount <= limits.nodes else { throw tooMany("\(limits.nodes) values", remedy: "Write fewer values.") }
        let place = here
        switch next {
        case UInt8(ascii: "{"): return JSONNode(.object(try readMembers()), place: place)
        case UInt8(ascii: "["): return JSONNode(.array(try readElements()), place: place)
        case UInt8(ascii: "\""): return JSONNode(.string(try readString()), place: place)
        case let byte? where byte.beginsNumber: return JSONNode(.number(try readNumber()), place: place)
        default:
            guard let word = readWord() else { throw expectedValue(orEnd: end) }
            return JSONNode(word, place: place)
        }
    }

    private mutating func readMembers() throws(FrameHostError) -> [JSONNode.Member] {
        let opening = try open()
        var members: [JSONNode.Member] = []
        var known = KnownKeys()
        while try !close(UInt8(ascii: "}"), opening) {
            let keyPlace = here
            guard next == UInt8(ascii: "\"") else { throw expectedKey(opening) }
            let key = try readString()
            guard key.utf8.count <= limits.keyBytes else { throw keyTooLong(key, keyPlace) }
            steps.append(.key(key))
            let first = known.place(of: key, in: members)
            if let first { try noteDuplicate(key, keyPlace, first: first) }
            try skipSpace()
            guard next == UInt8(ascii: ":") else {
                throw expected(
                    "':' after a key",
                    remedy: next.map(Self.isOfWord) == true
                        ? "A colon is missing here, or the key's closing quotation mark earlier on this line."
                        : "Put a colon between a key and its value.")
            }
            index += 1
            try skipSpace()
            let value = try readValue()
            steps.removeLast()
            if first == nil { members.append(JSONNode.Member(key: key, keyPlace: keyPlace, value: value)) }
            try endItem(UInt8(ascii: "}"), opening)
        }
        return members
    }

    private mutating func readElements() throws(FrameHostError) -> [JSONNode] {
        let opening = try open()
        var elements: [JSONNode] = []
        while try !close(UInt8(ascii: "]"), opening) {
            steps.append(.index(elements.count))
            elements.append(try readValue(orEnd: " or ']'"))
            steps.removeLast()
            try endItem(UInt8(ascii: "]"), opening)
        }
        return elements
    }

    /// Enters a list or object and gives the place where it began.
    private mutating func open() throws(FrameHostError) -> TextPlace {
        guard steps.count < limits.depth else {
            throw tooMany("\(limits.depth) levels of nested lists and objects", remedy: "Nest them less deeply.")
        }
        defer { index += 1 }
        return here
    }

    /// Whether the list or object ends here; if so, its bracket is consumed.
    private mutating func close(_ bracket: UInt8, _ opening: TextPlace) throws(FrameHostError) -> Bool {
        try skipSpace()
        guard let next else { throw notClosed(bracket, opening, expected: bracket.isBrace ? "a key" : "a value") }
        guard next == bracket else { return false }
        index += 1
        return true
    }

    /// Consumes the comma after a value; before the closing bracket there need be none.
    private mutating func endItem(_ bracket: UInt8, _ opening: TextPlace) throws(FrameHostError) {
        try skipSpace()
        switch next {
        case UInt8(ascii: ","): index += 1
        case bracket: break
        default: throw expectedComma(bracket, opening)
        }
    }

    private mutating func noteDuplicate(_ key: String, _ place: TextPlace, first: TextPlace) throws(FrameHostError) {
        let fault = duplicate(key, place, first: first)
        guard faults.count + 1 < limits.faults else { throw fault }
        faults.append(fault)
    }
}

// MARK: - Lines and encoding

extension JSONParser {
    /// Skips white space and comments, the only parts of a text in which lines end.
    mutating func skipSpace() throws(FrameHostError) {
        while let byte = next {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"): index += 1
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"): endLine()
            case UInt8(ascii: "/"): guard try skipComment() else { return }
            default: return
            }
        }
    }

    private mutating func endLine() {
        if bytes[index] == UInt8(ascii: "\r"), index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: "\n") {
            index += 1
        }
        index += 1
        line += 1
        lineStart = index
    }

    /// Skips the comment that begins here; false where a slash begins none.
    private mutating func skipComment() throws(FrameHostError) -> Bool {
        guard index + 1 < bytes.count else { return false }
        if bytes[index + 1] == UInt8(ascii: "/") {
            while let byte = next, !byte.endsLine { index += 1 }
            return true
        }
        guard bytes[index + 1] == UInt8(ascii: "*") else { return false }
        let opening = here
        index += 2
        while let byte = next {
            if byte == UInt8(ascii: "*"), index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: "/") {
                index += 2
                return true
            }
            if byte.endsLine { endLine() } else { index += 1 }
        }
        throw fault(opening, "a comment is not closed", remedy: "Close it with '*/'.")
    }

    /// Checks the whole text once, so that no later step meets a broken character.
    private func checkEncoding() throws(FrameHostError) {
        let offset: Int
        do {
            _ = try UTF8Span(validating: bytes.span)
            return
        } catch {
            offset = error.byteOffsets.lowerBound
        }
        var walker = self
        while walker.index < offset {
            if bytes[walker.index].endsLine { walker.endLine() } else { walker.index += 1 }
        }
        throw notUTF8(bytes[offset], walker.here)
    }
}

/// The keys of the object being read: searched one by one while few and plain, by hash after that.
///
/// Comparing long non-ASCII strings costs Swift more than their length; by hash each key is normalised a few times at
/// most.
private struct KnownKeys {
    private var places: [String: TextPlace] = [:]
    private var isHashed = false

    /// Where `key` stood before, if it did; `members` are all that came before it.
    mutating func place(of key: String, in members: [JSONNode.Member]) -> TextPlace? {
        isHashed = isHashed || members.count > 8 || !key.utf8.allSatisfy(UTF8.isASCII)
        guard isHashed else { return members.first { $0.key == key }?.keyPlace }
        for member in members[places.count...] { places[member.key] = member.keyPlace }
        return places[key]
    }
}

extension UInt8 {
    var endsLine: Bool { self == UInt8(ascii: "\n") || self == UInt8(ascii: "\r") }
    var isBrace: Bool { self == UInt8(ascii: "}") }
    var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
    /// True also for `+` and `.`, with which no JSON number begins, so that the fault names the whole number.
    var beginsNumber: Bool {
        isDigit || self == UInt8(ascii: "-") || self == UInt8(ascii: "+") || self == UInt8(ascii: ".")
    }
    /// Whether it can be part of a number or a bare word.
    var isWord: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "_"), UInt8(ascii: "$"): true
        default: beginsNumber
        }
    }
}
