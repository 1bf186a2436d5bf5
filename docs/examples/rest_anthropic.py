"""An agent with the `anthropic` package and the REST turn API."""

import json
import os

from anthropic import Anthropic

from quartermaster import Session

model, session = Anthropic(), Session("anthropic")
messages = [{"role": "user", "content": "The deployment checkout is broken. Find out why, and mend it."}]
while True:
    answer = model.messages.create(
        model=os.environ.get("MODEL", "scripted"), max_tokens=4096, messages=messages, tools=session.tools()
    )
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
    results = []
    for call in calls:
        print(f"{call.name} {json.dumps(call.input)}", flush=True)
        results.append({"type": "tool_result", "tool_use_id": call.id, "content": session.call(call.name, call.input)})
    messages.append({"role": "user", "content": results})
print(answer.content[0].text)
