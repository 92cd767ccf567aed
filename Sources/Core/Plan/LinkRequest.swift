/// What a person wrote about a stage's input link; what is nil the planner decides.
public struct LinkRequest: Sendable, Equatable {
    public var queue: Int?
    public var whenFull: DropPolicy?
    /// Access units: longest span queued, seconds.
    public var seconds: Double?
    /// Access units: most bytes queued, 10^6 bytes.
    public var megabytes: Double?
    /// The stage and what is behind it get copies in buffers of their own (`CopyTap`).
    public var copies = false

    public init(
        queue: Int? = nil, whenFull: DropPolicy? = nil, seconds: Double? = nil, megabytes: Double? = nil,
        copies: Bool = false
    ) {
        self.queue = queue
        self.whenFull = whenFull
        self.seconds = seconds
        self.megabytes = megabytes
        self.copies = copies
    }
}
