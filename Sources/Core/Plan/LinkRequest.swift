/// What a person wrote about a stage's input link; what is nil the planner decides.
public struct LinkRequest: Sendable, Equatable {
    public var queue: Int?
    public var whenFull: DropPolicy?
    /// Access units: longest span queued, seconds.
    public var seconds: Double?
    /// Access units: most bytes queued, 10^6 bytes.
    public var megabytes: Double?

    public init(queue: Int? = nil, whenFull: DropPolicy? = nil, seconds: Double? = nil, megabytes: Double? = nil) {
        self.queue = queue
        self.whenFull = whenFull
        self.seconds = seconds
        self.megabytes = megabytes
    }
}
