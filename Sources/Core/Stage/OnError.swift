/// What a stage's error does to the run.
public enum OnError: String, Sendable, CaseIterable {
    /// The chain drains and ends with status 1.
    case stop
    /// The stage drops all that follows, the others go on; the run ends with status 1.
    case `continue`
    /// Frames pass the filter by untouched; the run ends with status 1.
    case bypass
    /// The stage is made and started anew, after 1 s, 2 s, 4 s … at most 30 s, up to ten times in a row; what comes
    /// meanwhile is dropped, and what follows is marked as after a gap. The run ends with status 1 where that is in vain.
    case restart
}
