import FrameCore

/// Standard input and output are one user's each: a stage's, or the program's own.
enum StandardStreams {
    /// What the command line asks for and a stage has taken; nil when all goes together.
    static func fault(_ plan: ChainPlan, events: Bool, commands: Bool) -> FrameHostError? {
        for stage in plan.stages {
            for claim in stage.demand.claims {
                switch claim.name {
                // Who says terms shares it: whole lines of text.
                case "standard output" where claim.terms == nil && (events || commands):
                    return FrameHostError(
                        .invalidConfiguration, place: FaultPlace(argument: events ? "--events" : "--commands"),
                        what:
                            "'\(stage.id)' writes to standard output, where \(events ? "events" : "answers to commands") would go",
                        remedy: "Leave it out, or give '\(stage.id)' a pipe made with 'mkfifo'.")
                case "standard input" where commands:
                    return FrameHostError(
                        .invalidConfiguration, place: FaultPlace(argument: "--commands"),
                        what: "'\(stage.id)' reads standard input, where commands would come from",
                        remedy: "Leave it out, or give '\(stage.id)' a pipe made with 'mkfifo'.")
                default: break
                }
            }
        }
        return nil
    }
}
