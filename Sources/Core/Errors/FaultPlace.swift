/// Where a fault is: a member of a file, a stage and the item it had in hand, or what words say of it.
///
/// A value, so that programs can sort by it and find the place again; ``description`` is the one place where it becomes
/// text. A plugin that knows no more than the key of an option writes just that: `place: "model"`.
public struct FaultPlace: Sendable, Equatable {
    /// As the user wrote its name.
    public var file: String?
    /// Where in `file`; nil where the fault is about something that is not written there.
    public var position: TextPlace?
    /// The way to the member in `file`, which works in `jq` with a dot before it: `stages[2].from`.
    public var path: String?
    /// What the command line said in the file's stead: `--set camera.rate=3`.
    public var argument: String?
    /// The id of the stage it is about.
    public var stage: String?
    /// How that stage is shown, where `path` does not say it: `cam (v4l2-source)`.
    public var title: String?
    /// Sequence number of the item the stage had in hand.
    public var frame: UInt64?
    /// When that item is to be shown.
    public var pts: MediaTime?
    /// Whatever else says where it is, inside all that: an option's key, a path, an address.
    public var words: String

    public init(
        file: String? = nil, position: TextPlace? = nil, path: String? = nil, argument: String? = nil,
        stage: String? = nil, title: String? = nil, frame: UInt64? = nil, pts: MediaTime? = nil, words: String = ""
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
        self.words = words
    }

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
    public init(stringLiteral words: String) { self.init(words) }
}

extension FaultPlace: CustomStringConvertible {
    /// `camera.json:7:5: stages[2].from`, `--set camera.rate=3`, or `cam (v4l2-source): frame 1841, PTS 61.366 s`. Empty
    /// when there is no place.
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
            parts.append("frame \(frame)" + (pts.map { ", PTS \(text(seconds: $0.seconds)) s" } ?? ""))
        }
        if !words.isEmpty { parts.append(words) }
        return parts.joined(separator: ": ")
    }
}

extension FaultPlace {
    /// In the order in which a person mends faults: those of the command line and of a file as a whole, then down the
    /// file.
    public func precedes(_ other: FaultPlace) -> Bool {
        (position?.line ?? 0, position?.column ?? 0) < (other.position?.line ?? 0, other.position?.column ?? 0)
    }
}
