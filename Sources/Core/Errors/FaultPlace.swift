// SPDX-License-Identifier: Apache-2.0

/// Where a fault is: a member of a file, a stage with the item that it had in hand, or a place in words.
///
/// It is a value, so that programs can sort by it and find the place again; ``description`` gives its text. A plugin
/// that knows only the key of an option writes that: `place: "model"`.
public struct FaultPlace: Sendable, Equatable {
    /// The file, as the user wrote its name.
    public var file: String?
    /// Line and column in ``file``; nil for a fault about something that is not written there.
    public var position: TextPlace?
    /// The path of the member in ``file``, which works in `jq` with a dot before it: `stages[2].from`.
    public var path: String?
    /// The argument that replaced the file's value: `--set camera.rate=3`.
    public var argument: String?
    /// The id of the stage.
    public var stage: String?
    /// How that stage is shown, where ``path`` does not say it: `cam (v4l2-source)`.
    public var title: String?
    /// The sequence number of the item that the stage had in hand.
    public var frame: UInt64?
    /// The PTS of that item.
    public var pts: MediaTime?
    /// In a live chain, whose times are the clock's: how long after the start of the run that PTS is. Otherwise nil.
    public var sinceStart: MediaTime?
    /// The rest of the place, in words: an option's key, a path, an address.
    public var words: String

    /// Makes a place of the parts that are known.
    public init(
        file: String? = nil, position: TextPlace? = nil, path: String? = nil, argument: String? = nil,
        stage: String? = nil, title: String? = nil, frame: UInt64? = nil, pts: MediaTime? = nil,
        sinceStart: MediaTime? = nil, words: String = ""
    ) {
        self.file = file
        // Line 0: made by the program.
        self.position = position.flatMap { $0.line > 0 ? $0 : nil }
        self.path = path.flatMap { $0.isEmpty ? nil : $0 }
        self.argument = argument
        self.stage = stage
        self.title = title
        self.frame = frame
        self.pts = pts
        self.sinceStart = sinceStart
        self.words = words
    }

    /// A place in words.
    public init(_ words: String) { self.init(words: words) }

    /// This place seen from one layer further out.
    func within(_ outer: FaultPlace) -> FaultPlace {
        guard outer != FaultPlace() else { return self }
        var place = outer
        place.words = [outer.words, description].filter { !$0.isEmpty }.joined(separator: ": ")
        return place
    }
}

extension FaultPlace: ExpressibleByStringInterpolation {
    /// A place in words, so that a string is enough where a place is needed.
    public init(stringLiteral words: String) { self.init(words) }
}

extension FaultPlace: CustomStringConvertible {
    /// `camera.json:7:5: stages[2].from`, `--set camera.rate=3`, or, in a live chain,
    /// `cam (v4l2-source): frame 1841, 61.366 s after the start`. Empty when there is no place. Addresses, as of
    /// `--set cam.url=…`, are shown as ``Address`` has them.
    public var description: String {
        var parts: [String] = []
        if let argument {
            parts.append(argument)
        } else {
            if let file { parts.append(position.map { "\(file):\($0)" } ?? file) }
            let member = [path, title].compactMap { $0 }.joined(separator: " ")
            if !member.isEmpty { parts.append(member) }
        }
        if let frame {
            let time =
                sinceStart.map { ", \(text(seconds: $0.seconds)) s after the start" }
                ?? pts.map { ", PTS \(text(seconds: $0.seconds)) s" } ?? ""
            parts.append("frame \(frame)\(time)")
        }
        if !words.isEmpty { parts.append(words) }
        return parts.joined(separator: ": ").hidingAddresses()
    }
}

extension FaultPlace {
    /// Whether a person reads this place before `other`: places of the command line and of a file as a whole come
    /// first, then those in the file from top to bottom.
    public func precedes(_ other: FaultPlace) -> Bool {
        (position?.line ?? 0, position?.column ?? 0) < (other.position?.line ?? 0, other.position?.column ?? 0)
    }
}
