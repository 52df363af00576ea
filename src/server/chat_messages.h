// The messages of a chat, from OpenAI's shape to what chat templates read.
#pragma once

#include <string>

#include "base/json.h"
#include "text/chat_template.h"

namespace trtmc {

// An array of messages with the roles system, user, assistant and tool ("developer" is a system
// message, "function" a tool's) and content that is text: parts are joined by newlines, images,
// sounds and files are refused by name. An assistant's content may be null or missing, as it is
// next to tool calls; their arguments become the object that their text says. All other members
// stay as they are. Throws a FieldError.
Json::Array read_messages(const JsonCursor& messages);

// Renders the prompt and sees to it that no system message is lost on the way: many templates look
// for one in the first place only and pass over the others without a word. System messages at the
// start are then joined to one. Throws a FieldError for one that can't be saved so.
std::string render_with_system_messages(const ChatTemplate& chat_template, ChatInput input);

}  // namespace trtmc
