//! Text that talks to the model that reads it: orders to forget what it was told, roles, calls of tools, tricks with
//! approval.
//!
//! The patterns are read over the folded text, so that case, emphasis, line breaks and look-alike letters hide nothing.
//! They are chosen so that the language of runbooks passes ("ignore the old alert", "you are now connected"): whoever
//! writes around them gains little, because no gate is lifted by anything that is remembered.

use super::fold::FoldedText;
use regex::{Regex, RegexSet};
use std::sync::LazyLock;

const IGNORE: &str = "orders to ignore instructions";
const PERSONA: &str = "orders to be somebody else";
const PROMPT: &str = "orders to reveal instructions";
const SECRECY: &str = "orders to hide something from people";
const APPROVAL: &str = "orders to go around approval";
const ROLE: &str = "role markup";
const CALL: &str = "tool-call markup";

/// Read over the folded text: lower case, one blank between words, no quotes, no emphasis, no dashes.
const SPOKEN: [(&str, &str); 21] = [
    (
        IGNORE,
        r"\b(ignore|disregard|forget|override|overrule|bypass|discard|drop|neglect)\b[^.]{0,40}\b(previous|prior|above|earlier|preceding|foregoing|initial|original|existing|all|any|every|your|system|developer|safety)\b[^.]{0,30}\b(instructions?|prompts?|directives?|guidelines?|guardrails?|safeguards?|training|programming)\b",
    ),
    (
        IGNORE,
        r"\b(ignore|disregard|forget|override|bypass)\b (everything|anything|all|what|whatever|the instructions|instructions|the prompt|the text|the rules)\b[^.]{0,30}\b(above|before|previously|earlier|so far|you were told|you have been told|you know|were given|have been given|up to now)\b",
    ),
    (
        IGNORE,
        r"\b(ignore|disregard|override|bypass|break|violate)\b (all |any |of |the )*(your|previous|prior|system|safety|above)( own| safety| system)* (rules?|polic(y|ies)|orders?|constraints?|restrictions?|limits|limitations|filters?)\b",
    ),
    (
        IGNORE,
        r"\b(do not|don t|dont|stop|cease|no longer|never|quit) (follow|following|obey|obeying|heed|heeding|comply with|complying with|listen to|listening to)\b[^.]{0,30}\b(instructions?|prompts?|guidelines?|guardrails?|system message|developer message|directives?|your rules|the user|your operator)\b",
    ),
    (
        IGNORE,
        r"\b(new|updated|real|actual|true|following) (system )?(instructions|prompt|directives?)( for you)? ?(:|begin|start|supersede|replace|override)",
    ),
    (
        IGNORE,
        r"\b(these|the following|my) (instructions|orders|directives) (supersede|override|replace|take precedence over|take priority over)\b",
    ),
    (
        IGNORE,
        r"\b(end|start|begin|beginning) of (the )?(system|developer|hidden|original|new|user) (prompt|instructions|message)\b",
    ),
    (
        IGNORE,
        r"\bignorier\w* (\w+ ){0,3}(vorherig|bisherig|obig|fr\wher|alle)\w* (\w+ ){0,2}(anweisung|instruktion|vorgabe|regel)\w*",
    ),
    (
        IGNORE,
        r"\b(ignore[zr]?|ignora|ignoren|ignorad|olvid[ae]|oubliez?|dimentica|esque[cç]a|n[eé]glige[zr]?) (\w+ ){0,4}(instrucciones|instructions|istruzioni|instru[cç][oõ]es|consignes|[oó]rdenes|indicaciones|directrices)\b( \w+){0,2} ?(anteriores|previas|pr[eé]c[eé]dentes|precedenti|ci dessus|de arriba|anterior)",
    ),
    (
        IGNORE,
        r"\b(игнорируй(те)?|забудь(те)?|не обращай(те)? внимания на) (\w+ ){0,3}(предыдущ|прошл|прежн|все|ранее|выше)\w* ?(\w+ )?(инструкц|указани|команд|правил)\w*",
    ),
    (
        IGNORE,
        r"(忽略|无视|忘记|不要理会|無視)[^。.]{0,12}(之前|以上|先前|上述|前面|所有|以前)[^。.]{0,8}(指令|指示|提示|说明|命令|規則|规则)",
    ),
    (IGNORE, r"(以前|これまで|上記|前)の(指示|命令|プロンプト)[^。.]{0,10}(無視|忘れ)"),
    (
        PERSONA,
        r"\b(you are|you re|act as|behave as|become) (now |henceforth )?(an? |the |my )?(unrestricted|uncensored|unfiltered|jailbroken|evil|dan\b|developer mode|god mode|different (ai|assistant|model)|new (ai|assistant|model|persona))",
    ),
    (
        PERSONA,
        r"\b(from now on|henceforth|starting now|from this point)\b[^.]{0,20}\byou (are|will|must|shall|should|have to|act|obey|respond|only)\b",
    ),
    (
        PERSONA,
        r"\b(pretend|imagine|roleplay|role play) (that |as |to be |as if )*(you|an? (ai|assistant|model|unrestricted|admin))\b",
    ),
    (
        PERSONA,
        r"\byour (new|real|true|only|actual) (role|task|goal|objective|purpose|identity|instructions?|mission|master) (is|are)\b",
    ),
    (
        PROMPT,
        r"\b(reveal|print|show|repeat|output|leak|disclose|display|send|dump|tell me)\b[^.]{0,30}\b(your|the|its) (full |entire |complete |exact )?(system|initial|hidden|developer|original|secret) (prompt|message|instructions|rules)\b",
    ),
    (
        SECRECY,
        r"\b(do not|don t|dont|never|without|must not|avoid) (ever )?(tell|telling|inform|informing|mention|mentioning|reveal|revealing|disclose|disclosing|ask|asking|show|showing|alert|alerting)\b( this| it| that| them| anything)*( to)? (the |your |any |a )?(user|human|humans|operator|approver|approvers|reviewer|reviewers|decider|people)\b",
    ),
    (
        APPROVAL,
        r"\b(always|automatically|silently|blindly|immediately|unconditionally|auto) ?(approve|confirm|accept|authorize|sign off)\b[^.]{0,40}",
    ),
    (
        APPROVAL,
        r"\b(skip|bypass|circumvent|evade|sidestep|avoid|disable|work around|get around|go around)\b (the |any |all |every |human |manual |your |its |this )*(approvals?|approval (gate|step|process|check|flow)|human (review|oversight|approval)|confirmation prompts?|permission (checks?|prompts?)|safety (checks?|scans?|rules))\b",
    ),
    (
        APPROVAL,
        r"\b(no (human )?approval (is )?(needed|required|necessary) (for|from|when|because|since)? ?(you|the (agent|assistant|model|ai)|agents|assistants)|(this|it|that|the)( run| change| call| action| request)? (is|was|has been|have been) (already |pre ?)(approved|authorized) by (the )?(security|admin|administrator|operator|system|owner|user))\b",
    ),
];

/// Read line by line over the text as it stands, because signs matter.
const MARKED: [(&str, &str); 12] = [
    (
        ROLE,
        r"<\|\s*/?\s*(im_start|im_end|system|user|assistant|endoftext|end|eot_id|begin_of_text|start_header_id|end_header_id|tool|fim_\w+|channel|message)[^|>]{0,20}\|>",
    ),
    (ROLE, r"(?i)\[/?INST\]|<</?SYS>>|<(start|end)_of_turn>"),
    (
        ROLE,
        r"(?i)</?\s*(system|assistant|developer|system[-_]?(prompt|message|reminder|instructions?)|thinking|antthinking)(\s[^>]{0,200})?>",
    ),
    (ROLE, r"(?i)</\s*(user|human|instructions?|untrusted|context|document|documents|data)\s*>"),
    (ROLE, r"^\s{0,3}(>\s*)?(\*\*|#{1,6}\s*)?(Human|Assistant|H|A)(\*\*)?\s*:(\*\*)?\s"),
    (
        ROLE,
        r"(?i)^\s{0,3}(#{1,6}\s*|\*\*|\[)?\s*(system|developer)(\s+(prompt|message|instructions?|note))?\s*(\*\*|\])?\s*:(\*\*)?\s+\W{0,3}(you|ignore|disregard|your|from now|the (assistant|agent|model|user)|override|always|never|new|stop|forget)\b",
    ),
    (ROLE, r#"(?i)["']role["']\s*:\s*["'](system|assistant|user|tool|developer|function)["']"#),
    (ROLE, r"(?i)^\s*#{2,6}\s*(instruction|response|system|input)s?\s*:\s*$"),
    (
        CALL,
        r"(?i)</?\s*(antml:)?(function_calls?|function_results?|tool_calls?|tool_use|tool_results?|tool_response|invoke|parameter\s+name)\b[^>]{0,200}>",
    ),
    (CALL, r#"(?i)["'](tool_calls?|function_call|tool_use_id|tool_call_id|tool_name)["']\s*:"#),
    (CALL, r#"(?i)["']method["']\s*:\s*["'](tools/call|sampling/createMessage|elicitation/create)["']"#),
    (
        CALL,
        r"(?i)^\s*(```|~~~)\s*(tool_call|tool_code|tool_use|function_call|tool)\s*$|\[/?TOOL_CALLS?\]|<\|?(tool_call|python_tag)\|?>",
    ),
];

struct OrderPatterns {
    spoken: Vec<Regex>,
    any_spoken: RegexSet,
    marked: RegexSet,
}

static PATTERNS: LazyLock<Option<OrderPatterns>> = LazyLock::new(|| {
    let spoken = SPOKEN.iter().map(|(_, pattern)| Regex::new(pattern).ok()).collect::<Option<Vec<_>>>()?;
    let any_spoken = RegexSet::new(SPOKEN.map(|(_, pattern)| pattern)).ok()?;
    let marked = RegexSet::new(MARKED.map(|(_, pattern)| pattern)).ok()?;
    Some(OrderPatterns { spoken, any_spoken, marked })
});

/// Every line that gives orders, and which kind; `None` if the rules cannot be had.
pub(super) fn find(text: &str) -> Option<Vec<(usize, &'static str)>> {
    let patterns = PATTERNS.as_ref()?;
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let rules = patterns.marked.matches(line).into_iter().filter_map(|at| MARKED.get(at));
        found.extend(rules.map(|(rule, _)| (n + 1, *rule)));
    }
    let folded = FoldedText::of(text);
    for at in patterns.any_spoken.matches(&folded.text) {
        let (Some((rule, _)), Some(pattern)) = (SPOKEN.get(at), patterns.spoken.get(at)) else { continue };
        found.extend(pattern.find_iter(&folded.text).map(|hit| (folded.line(hit.start()), *rule)));
    }
    Some(found)
}
