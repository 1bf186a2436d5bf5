"""An agent with the `openai` package and the REST turn API."""

import json
import os

from openai import OpenAI

from quartermaster import Session

model, session = OpenAI(), Session("openai")
messages = [{"role": "user", "content": "The deployment checkout is broken. Find out why, and mend it."}]
while True:
    answer = model.chat.completions.create(
        model=os.environ.get("MODEL", "scripted"), messages=messages, tools=session.tools()
    )
    message = answer.choices[0].message
    if not message.tool_calls:
        break
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        print(f"{call.function.name} {call.function.arguments}", flush=True)
        result = session.call(call.function.name, json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(message.content)
