/// What a stage's error does to the run.
public enum OnError: String, Sendable, CaseIterable {
    /// The chain drains and ends with status 1.
    case stop
    /// The stage drops all that follows, the others go on; the run ends with status 1.
    case `continue`
}
